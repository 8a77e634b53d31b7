// What holds for every index codec.
#include <algorithm>

#include "tests/cc/check.h"
#include "tests/cc/samples.h"

namespace deepreduce::testing {
namespace {

// All of the registry but these.
std::vector<const IndexCodec*> AllBut(std::initializer_list<const IndexCodec*> others) {
  std::vector<const IndexCodec*> codecs;
  for (const IndexCodecEntry& entry : IndexCodecs()) {
    if (std::find(others.begin(), others.end(), entry.codec) == others.end()) codecs.push_back(entry.codec);
  }
  return codecs;
}

// Those that give back the support that they are given.
std::vector<const IndexCodec*> Lossless() { return AllBut({&kSeededSupport, &kBloomFilter}); }

// Those of them whose codes hold nothing but the support; Rice has tests of its own.
std::vector<const IndexCodec*> CodesOfSupports() { return AllBut({&kSeededSupport, &kFixedWidth, &kRice, &kBloomFilter, &kAdaptive}); }

// The code of `indices`, after checking that it decodes to them, and is not longer than the raw form.
Bytes RoundTrip(const IndexCodec& codec, int64_t size, const Support& indices) {
  Segment segment;
  segment.size = size;
  CHECK(IsSupport(indices, size));
  const Bytes code = Encode(codec, segment, indices);
  CHECK(code.size() <= RawIndexLength(static_cast<int64_t>(indices.size()), size));
  Support decoded(indices.size(), -1);
  const Error error = Decode(codec, segment, code, &decoded);
  CHECK(error.ok());
  CHECK(decoded == indices);
  return code;
}

bool Same(const char* name, const char* expected) { return name != nullptr && std::strcmp(name, expected) == 0; }

TEST("Every lossless index codec gives back any support of any size up to 300") {
  for (const IndexCodec* codec : Lossless()) {
    for (int64_t size = 1; size <= 300; ++size) {
      for (int64_t count = 0; count <= size; count += 1 + size / 40)
        RoundTrip(*codec, size, UniformSupport(size, count, size * 1000 + count));
      RoundTrip(*codec, size, UniformSupport(size, size, 1));
      RoundTrip(*codec, size, {static_cast<int32_t>(size - 1)});
      for (int run : {1, 3, 50}) RoundTrip(*codec, size, ClusteredSupport(size, run, size));
    }
  }
}

TEST("Every lossless index codec gives back large supports at all densities") {
  for (const IndexCodec* codec : Lossless()) {
    for (double density : {0.0001, 0.001, 0.01, 0.1, 0.3, 0.5, 0.51, 0.7, 0.9, 0.99, 0.9999}) {
      RoundTrip(*codec, 100003, UniformSupport(100003, std::llround(100003 * density), 5));
    }
    for (int run : {2, 10, 1000, 40000}) RoundTrip(*codec, 100000, ClusteredSupport(100000, run, 9));
  }
}

TEST("Every lossless index codec works up to the largest size") {
  const int64_t size = 0x7fffffff;
  for (const IndexCodec* codec : Lossless()) {
    RoundTrip(*codec, size, {0});
    RoundTrip(*codec, size, {static_cast<int32_t>(size - 1)});
    RoundTrip(*codec, size, {0, 1, 2, static_cast<int32_t>(size - 2), static_cast<int32_t>(size - 1)});
    RoundTrip(*codec, size, UniformSupport(size, 1000, 1));
  }
}

TEST("Nothing and everything kept have an empty code") {
  for (const IndexCodec* codec : AllBut({&kBloomFilter})) {
    Segment segment;
    segment.size = 77;
    Support all(77), none;
    CHECK(Decode(*codec, segment, {}, &all).ok());
    CHECK(all == UniformSupport(77, 77, 1));
    CHECK(Decode(*codec, segment, {}, &none).ok());
    CHECK(Encode(*codec, segment, all).empty());
    CHECK(Encode(*codec, segment, none).empty());
    CHECK(Same(Decode(*codec, segment, {0}, &all).name, "index code is longer than raw indices"));
    CHECK(Same(Decode(*codec, segment, {0}, &none).name, "index code is longer than raw indices"));
    segment.size = 0;
    CHECK(Decode(*codec, segment, {}, &none).ok());
  }
}

TEST("There is no codec behind an unknown id") {
  for (int id : {100, 254, 255}) CHECK(FindIndexCodec(static_cast<uint8_t>(id)) == nullptr);
}

TEST("IsSupport accepts strictly ascending places below the size, nothing else") {
  CHECK(IsSupport(Span<const int32_t>(), 0));
  for (const Support& good : {Support{0}, Support{0, 1, 4}, Support{4}}) CHECK(IsSupport(good, 5));
  for (const Support& bad : {Support{5}, Support{-1}, Support{1, 1}, Support{2, 1, 3}, Support{0, -1, 2}}) CHECK(!IsSupport(bad, 5));
}

TEST("A seeded support is empty in bytes, the same each time, and differs by seed, step and segment") {
  Segment segment;
  segment.size = 1000;
  segment.seed = 7;
  segment.step = 9;
  Support first(100), again(100), other(100);
  CHECK(Decode(kSeededSupport, segment, {}, &first).ok());
  CHECK(Decode(kSeededSupport, segment, {}, &again).ok());
  CHECK(first == again);
  CHECK(IsSupport(first, 1000));
  CHECK(Encode(kSeededSupport, segment, first).empty());
  for (int field = 0; field < 3; ++field) {
    Segment changed = segment;
    changed.seed += field == 0;
    changed.step += field == 1;
    changed.number += field == 2;
    CHECK(Decode(kSeededSupport, changed, {}, &other).ok());
    CHECK(other != first);
  }
  CHECK(!Decode(kSeededSupport, segment, {1}, &other).ok());
  const Bytes raw = Encode(kFixedWidth, segment, first);
  CHECK(Same(Decode(kSeededSupport, segment, raw, &other).name, "raw indices where the coded form is shorter"));
}

TEST("Raw indices are refused when they repeat, descend, reach the size, or leave padding that is not zero") {
  Segment segment;
  segment.size = 5;  // 3 bits each
  Support two(2);
  const auto decode = [&](int first, int second, int padding) {
    return Decode(kFixedWidth, segment, {static_cast<uint8_t>(first | second << 3 | padding << 6)}, &two);
  };
  CHECK(decode(1, 4, 0).ok());
  CHECK(two == (Support{1, 4}));
  const char* kOrder = "raw indices do not ascend strictly below the size";
  CHECK(Same(decode(4, 4, 0).name, kOrder));
  CHECK(Same(decode(3, 2, 0).name, kOrder));
  CHECK(Same(decode(3, 5, 0).name, kOrder));
  CHECK(Same(decode(1, 4, 1).name, "padding bits are not zero"));
  CHECK(Same(Decode(kFixedWidth, segment, {}, &two).name, "FixedWidth has no coded form"));
  CHECK(Same(Decode(kFixedWidth, segment, {1, 2}, &two).name, "index code is longer than raw indices"));
}

TEST("A wrong raw index is reported at its byte") {
  Segment segment;
  segment.size = 256;
  Support three(3);
  CHECK(Decode(kFixedWidth, segment, {1, 9, 3}, &three).position == 2);
}

TEST("A bitmap is refused with the wrong length, bits beyond the size, or another number of bits") {
  Segment segment;
  segment.size = 12;
  Support six(6);
  CHECK(Decode(kBitmap, segment, {0x0f, 0x0c}, &six).ok());
  CHECK(six == (Support{0, 1, 2, 3, 10, 11}));
  CHECK(Same(Decode(kBitmap, segment, {0x0f}, &six).name, "Bitmap: wrong length"));
  const Error beyond = Decode(kBitmap, segment, {0x0f, 0x14}, &six);
  CHECK(Same(beyond.name, "Bitmap: bits beyond the size are set") && beyond.position == 1);
  CHECK(Same(Decode(kBitmap, segment, {0x0f, 0x04}, &six).name, "Bitmap: the number of set bits is not the count"));
  CHECK(Same(Decode(kBitmap, segment, {0x1f, 0x0c}, &six).name, "Bitmap: the number of set bits is not the count"));
}

TEST("What decodes is what the encoder writes, among all codes of up to two bytes") {
  for (const IndexCodec* codec : CodesOfSupports()) {
    for (int64_t size : {2, 5, 9, 16, 300}) {
      for (int64_t count = 1; count < std::min<int64_t>(size, 12); ++count) {
        Segment segment;
        segment.size = size;
        Support indices(static_cast<size_t>(count));
        const auto check = [&](const Bytes& code) {
          if (!Decode(*codec, segment, code, &indices).ok()) return;
          CHECK(IsSupport(indices, size));
          CHECK(Encode(*codec, segment, indices) == code);
        };
        for (int bits = 0; bits < 1 << 16; ++bits) {
          if (bits < 256) check({static_cast<uint8_t>(bits)});
          check({static_cast<uint8_t>(bits), static_cast<uint8_t>(bits >> 8)});
        }
      }
    }
  }
}

TEST("Every truncation and most changes of a long code are refused, and no decoder reads beyond it") {
  for (const IndexCodec* codec : CodesOfSupports()) {
    for (int64_t count : {900, 20000, 45000, 60000, 99000}) {
      Segment segment;
      segment.size = 100000;
      Support indices = UniformSupport(segment.size, count, 2);
      const Bytes code = Encode(*codec, segment, indices);
      for (size_t length = 0; length < code.size(); length += 1 + code.size() / 50) {
        CHECK(!Decode(*codec, segment, Bytes(code.begin(), code.begin() + static_cast<std::ptrdiff_t>(length)), &indices).ok());
      }
      for (uint64_t i = 0; i < 100; ++i) {
        Bytes changed = code;
        changed[RandomBits(1, i) % code.size()] ^= static_cast<uint8_t>(1 << (i & 7));
        if (Decode(*codec, segment, changed, &indices).ok()) CHECK(Encode(*codec, segment, indices) == changed);
      }
    }
  }
}

TEST("Raw indices are refused where the codec had a shorter form") {
  Segment segment;
  segment.size = 1000;
  Support indices = UniformSupport(1000, 500, 3);
  const Bytes raw = Encode(kFixedWidth, segment, indices);
  for (const IndexCodec* codec : AllBut({&kSeededSupport, &kFixedWidth, &kBloomFilter}))
    CHECK(Same(Decode(*codec, segment, raw, &indices).name, "raw indices where the coded form is shorter"));
}

}  // namespace
}  // namespace deepreduce::testing
