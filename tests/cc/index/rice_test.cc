// Rice: its sizes, its bytes, and what it refuses.
#include "tests/cc/check.h"
#include "tests/cc/refuses.h"
#include "tests/cc/samples.h"

namespace deepreduce::testing {
namespace {

double BoundBytes(double size, double count) {
  return (std::lgamma(size + 1) - std::lgamma(count + 1) - std::lgamma(size - count + 1)) / std::log(2.0) / 8;
}

double OfTheBound(double density) {
  Segment segment;
  segment.size = 1000000;
  const int64_t count = std::llround(density * 1e6);
  const Bytes code = Encode(kRice, segment, UniformSupport(segment.size, count, 11));
  return static_cast<double>(code.size()) / BoundBytes(1e6, static_cast<double>(count));
}

Error DecodeRice(int64_t size, size_t count, const Bytes& code) {
  Segment segment;
  segment.size = size;
  Support indices(count);
  return Decode(kRice, segment, code, &indices);
}

// The smallest b with the least total, by trying all of them.
int BestParameter(const Support& indices) {
  int best = 0;
  uint64_t least = UINT64_MAX;
  for (int b = 0; b <= 30; ++b) {
    uint64_t total = 0;
    int64_t before = -1;
    for (int32_t index : indices) {
      total += (static_cast<uint64_t>(index - before - 1) >> b) + 1 + static_cast<uint64_t>(b);
      before = index;
    }
    if (total < least) best = b;
    least = std::min(least, total);
  }
  return best;
}

TEST("Rice stays within 2 % of the bound at 0.1, 1, 10 and 50 %") {
  for (double density : {0.001, 0.01, 0.1, 0.5}) CHECK(OfTheBound(density) <= 1.02);
}

TEST("Rice stays within 4.5 % of the bound anywhere between") {
  for (double density = 0.001; density <= 0.5; density *= 1.17) CHECK(OfTheBound(density) <= 1.045);
  CHECK(OfTheBound(0.38) <= 1.045);
}

TEST("Rice takes the smallest of the best parameters") {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    Segment segment;
    segment.size = 40 + static_cast<int64_t>(Mix(seed) % 5000);
    // Squared places have gaps unlike any geometric law, so that the first guess is wrong.
    Support indices;
    for (int64_t i = 0; i * i < segment.size; i += 1 + static_cast<int64_t>(seed % 3)) indices.push_back(static_cast<int32_t>(i * i));
    if (seed % 2 == 0) indices = UniformSupport(segment.size, 1 + static_cast<int64_t>(Mix(seed + 1) % 20), seed);
    const Bytes code = Encode(kRice, segment, indices);
    if (code.size() < RawIndexLength(static_cast<int64_t>(indices.size()), segment.size)) CHECK(code[0] == BestParameter(indices));
  }
}

TEST("Rice writes the bytes of the format page") {
  Segment segment;
  segment.size = 100;
  // Gaps 3 4 0 5 under b = 1: 01 1, 001 0, 1 0, 001 1, from the low bits upwards.
  CHECK(Encode(kRice, segment, {3, 8, 9, 15}) == (Bytes{0x01, 0xa6, 0x18}));
  // Of 16 places 2 and 9 are absent: gaps 2 6 under b = 2: 1 01, 01 01; bit 6 for the complement.
  segment.size = 16;
  CHECK(Encode(kRice, segment, {0, 1, 3, 4, 5, 6, 7, 8, 10, 11, 12, 13, 14, 15}) == (Bytes{0x42, 0x55}));
}

TEST("Rice codes runs longer than a word") {
  for (int64_t gap : {20, 25, 26, 27, 55, 56, 57, 63, 64, 65, 100, 1000, 100000}) {
    // Many neighbours force a small parameter, so a gap becomes a long run of zero bits.
    for (int32_t before : {200, 4001}) {
      Segment segment;
      segment.size = 1000000;
      Support indices(static_cast<size_t>(before));
      std::iota(indices.begin(), indices.end(), 0);
      for (int32_t i = 0; i < 50; ++i) indices.push_back(static_cast<int32_t>(before + gap) + i);
      Support decoded(indices.size());
      CHECK(Decode(kRice, segment, Encode(kRice, segment, indices), &decoded).ok());
      CHECK(decoded == indices);
    }
  }
}

TEST("Rice refuses a parameter that is not the best") {
  // {3, 8, 9, 15} under b = 0: 0001, 00001, 1, 000001, and under b = 2: 1 11, 01 00, 1 00, 01 10.
  CHECK(DecodeRice(100, 4, {0x01, 0xa6, 0x18}).ok());
  CHECK(Refuses(kRice, 100, 4, {0x00, 0x08, 0x83}, "Rice: another parameter is better", 0));
  CHECK(Refuses(kRice, 100, 4, {0x02, 0x97, 0x18}, "Rice: another parameter is better", 0));
}

TEST("Rice accepts only what it would write itself, among all short codes") {
  const auto check = [](int64_t size, int64_t count, const Bytes& code) {
    Segment segment;
    segment.size = size;
    Support indices(static_cast<size_t>(count));
    if (!Decode(kRice, segment, code, &indices).ok()) return;
    CHECK(IsSupport(indices, size));
    CHECK(Encode(kRice, segment, indices) == code);
  };
  for (int64_t size = 2; size <= 20; size += 3) {
    for (int64_t count = 1; count < size; ++count) {
      for (int first = 0; first < 256; ++first) {
        const bool plausible = (first & 0xbf) < 4;
        check(size, count, {static_cast<uint8_t>(first)});
        for (int next = 0; next < (plausible ? 2048 : 2); ++next) {
          check(size, count, {static_cast<uint8_t>(first), static_cast<uint8_t>(next)});
          check(size, count, {static_cast<uint8_t>(first), static_cast<uint8_t>(next), static_cast<uint8_t>(next >> 8)});
        }
      }
    }
  }
}

TEST("Rice refuses parameters no encoder writes") {
  CHECK(Refuses(kRice, 100, 4, {0x1f, 0xa6, 0x18}, "Rice: unknown parameter bits", 0));
  CHECK(Refuses(kRice, 100, 4, {0x81, 0xa6, 0x18}, "Rice: unknown parameter bits", 0));
  CHECK(Refuses(kRice, 100, 4, {0x41, 0xa6, 0x18}, "Rice: wrong complement bit", 0));
  CHECK(Refuses(kRice, 16, 14, {0x02, 0x55}, "Rice: wrong complement bit", 0));
  CHECK(Refuses(kRice, 100, 4, {}, "Rice: empty code", 0));
}

TEST("Rice refuses codes that end early, go on, or leave padding that is not zero") {
  CHECK(Refuses(kRice, 100, 4, {0x01, 0xa6}, "Rice: code ends inside a gap", 2));
  CHECK(Refuses(kRice, 1000, 4, {0x01, 0xa6, 0x18, 0x00}, "bytes after the end of the code", 3));
  CHECK(Refuses(kRice, 100, 4, {0x01, 0xa6, 0x98}, "padding bits are not zero", 2));
}

TEST("Rice refuses gaps that lead beyond the size, however large") {
  CHECK(!DecodeRice(100, 4, {0x02, 0x00, 0x00}).ok());
  // A gap of (2^17 zero bits) << 30 in a segment that has room for such a code.
  Bytes code(20000, 0);
  code[0] = 30;
  code[17000] = 1;
  CHECK(!DecodeRice(0x7fffffff, 6000, code).ok());
  code[3] = 1;
  CHECK(!DecodeRice(0x7fffffff, 6000, code).ok());
  CHECK(!DecodeRice(0x7fffffff, 6000, Bytes(20000, 0)).ok());
}

TEST("Rice refuses every truncation and most changes of a long code, and never reads beyond it") {
  for (int64_t count : {900, 45000, 60000, 99000}) {
    Segment segment;
    segment.size = 100000;
    Support indices = UniformSupport(segment.size, count, 2);
    const Bytes code = Encode(kRice, segment, indices);
    for (size_t length = 0; length < code.size(); length += 1 + code.size() / 50) {
      CHECK(!Decode(kRice, segment, Bytes(code.begin(), code.begin() + static_cast<std::ptrdiff_t>(length)), &indices).ok());
    }
    for (uint64_t i = 0; i < 100; ++i) {
      Bytes changed = code;
      changed[RandomBits(1, i) % code.size()] ^= static_cast<uint8_t>(1 << (i & 7));
      if (Decode(kRice, segment, changed, &indices).ok()) CHECK(Encode(kRice, segment, indices) == changed);
    }
  }
}

}  // namespace
}  // namespace deepreduce::testing
