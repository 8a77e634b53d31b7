// Seeded supports against the words of docs/format/index_codes.md, "Seeded support", in their plainest form.
#include <algorithm>
#include <set>

#include "tests/cc/check.h"
#include "tests/cc/samples.h"

namespace deepreduce::testing {
namespace {

uint64_t PlainMix(uint64_t z) {
  z ^= z >> 30;
  z *= 0xbf58476d1ce4e5b9ull;
  z ^= z >> 27;
  z *= 0x94d049bb133111ebull;
  z ^= z >> 31;
  return z;
}

// The high half of a 128-bit product, in 32-bit halves.
uint64_t HighHalf(uint64_t a, uint64_t b) {
  const uint64_t low = (a & 0xffffffff) * b;
  return ((a >> 32) * b + (low >> 32)) >> 32;  // b is below 2^32
}

Support PlainSupport(uint64_t key, int64_t size, int64_t count) {
  const uint64_t golden = 0x9e3779b97f4a7c15ull;
  const int64_t drawn = std::min(count, size - count);
  std::set<int64_t> places;
  for (uint64_t j = 0; static_cast<int64_t>(places.size()) < drawn; ++j) {
    places.insert(static_cast<int64_t>(HighHalf(PlainMix(key + (j + 1) * golden), static_cast<uint64_t>(size))));
  }
  Support support;
  for (int64_t place = 0; place < size; ++place) {
    if ((places.count(place) != 0) == (2 * count <= size)) support.push_back(static_cast<int32_t>(place));
  }
  return support;
}

TEST("A seeded support is what the page says, for every count of every small size") {
  for (int64_t size = 1; size <= 140; size += size < 70 ? 1 : 23) {
    for (int64_t count = 0; count <= size; ++count) {
      const uint64_t key = RandomBits(5, static_cast<uint64_t>(size * 1000 + count));
      Support support(static_cast<size_t>(count));
      RandomSupport(key, size, support);
      CHECK(support == PlainSupport(key, size, count));
    }
  }
}

TEST("A seeded support is what the page says, for large sizes at all densities") {
  for (int64_t size : {4096, 100003}) {
    for (double density : {0.00001, 0.01, 0.3, 0.4999, 0.5, 0.5001, 0.8, 0.99, 1.0}) {
      Support support(static_cast<size_t>(std::llround(density * static_cast<double>(size))));
      RandomSupport(77, size, support);
      CHECK(support == PlainSupport(77, size, static_cast<int64_t>(support.size())));
    }
  }
}

TEST("A seeded support of the largest size holds distinct ascending places all over it") {
  const int64_t size = 0x7fffffff;
  Support support(1000);
  RandomSupport(3, size, support);
  CHECK(IsSupport(support, size));
  CHECK(support.front() < size / 50 && support.back() > size - size / 50);
}

TEST("The key of a stream is the page's function of seed, step and segment") {
  const uint64_t golden = 0x9e3779b97f4a7c15ull;
  CHECK(StreamKey(7, 3, 0) == 0xbce33ed48e94b602ull);
  for (uint64_t i = 0; i < 100; ++i) {
    const uint64_t seed = RandomBits(1, i), step = RandomBits(2, i), segment = RandomBits(3, i);
    CHECK(StreamKey(seed, step, segment) == PlainMix(PlainMix(PlainMix(seed + golden) + step * golden) + segment * golden));
  }
}

TEST("Every place is drawn about equally often") {
  constexpr int64_t kSize = 50;
  int times[kSize] = {};
  for (uint64_t key = 0; key < 10000; ++key) {
    Support support(5);
    RandomSupport(Mix(key), kSize, support);
    for (int32_t place : support) ++times[place];
  }
  for (int each : times) CHECK(each > 1000 - 150 && each < 1000 + 150);  // five standard deviations
}

}  // namespace
}  // namespace deepreduce::testing
