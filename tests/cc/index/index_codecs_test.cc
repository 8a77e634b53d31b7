// What holds for every index codec.
#include "tests/cc/check.h"
#include "tests/cc/samples.h"

namespace deepreduce::testing {
namespace {

constexpr uint8_t kLossless[] = {1, 2, 3, 4, 5, 6, 7, 9};

// The code of `indices`, after checking that it decodes to them, and is not longer than the raw form.
Bytes RoundTrip(uint8_t id, int64_t size, const Support& indices) {
  Segment segment;
  segment.size = size;
  CHECK(IsSupport(indices, size));
  const Bytes code = Encode(FindIndex(id), segment, indices);
  CHECK(code.size() <= RawIndexLength(static_cast<int64_t>(indices.size()), size));
  Support decoded(indices.size(), -1);
  const Error error = Decode(FindIndex(id), segment, code, &decoded);
  CHECK(error.ok());
  CHECK(decoded == indices);
  return code;
}

bool Same(const char* name, const char* expected) { return name != nullptr && std::strcmp(name, expected) == 0; }

TEST("Every lossless index codec gives back any support of any size up to 300") {
  for (uint8_t id : kLossless) {
    for (int64_t size = 1; size <= 300; ++size) {
      for (int64_t count = 0; count <= size; count += 1 + size / 40) RoundTrip(id, size, UniformSupport(size, count, size * 1000 + count));
      RoundTrip(id, size, UniformSupport(size, size, 1));
      RoundTrip(id, size, {static_cast<int32_t>(size - 1)});
      for (int run : {1, 3, 50}) RoundTrip(id, size, ClusteredSupport(size, run, size));
    }
  }
}

TEST("Every lossless index codec gives back large supports at all densities") {
  for (uint8_t id : kLossless) {
    for (double density : {0.0001, 0.001, 0.01, 0.1, 0.3, 0.5, 0.51, 0.7, 0.9, 0.99, 0.9999}) {
      RoundTrip(id, 100003, UniformSupport(100003, std::llround(100003 * density), 5));
    }
    for (int run : {2, 10, 1000, 40000}) RoundTrip(id, 100000, ClusteredSupport(100000, run, 9));
  }
}

TEST("Every lossless index codec works up to the largest size") {
  const int64_t size = 0x7fffffff;
  for (uint8_t id : kLossless) {
    RoundTrip(id, size, {0});
    RoundTrip(id, size, {static_cast<int32_t>(size - 1)});
    RoundTrip(id, size, {0, 1, 2, static_cast<int32_t>(size - 2), static_cast<int32_t>(size - 1)});
    RoundTrip(id, size, UniformSupport(size, 1000, 1));
  }
}

TEST("Nothing and everything kept have an empty code") {
  for (uint8_t id : {0, 1, 2, 3, 4, 5, 6, 7, 9}) {
    Segment segment;
    segment.size = 77;
    Support all(77), none;
    CHECK(Decode(FindIndex(id), segment, {}, &all).ok());
    CHECK(all == UniformSupport(77, 77, 1));
    CHECK(Decode(FindIndex(id), segment, {}, &none).ok());
    CHECK(Encode(FindIndex(id), segment, all).empty());
    CHECK(Encode(FindIndex(id), segment, none).empty());
    CHECK(Same(Decode(FindIndex(id), segment, {0}, &all).name, "index code is longer than raw indices"));
    CHECK(Same(Decode(FindIndex(id), segment, {0}, &none).name, "index code is longer than raw indices"));
    segment.size = 0;
    CHECK(Decode(FindIndex(id), segment, {}, &none).ok());
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
  CHECK(Decode(FindIndex(0), segment, {}, &first).ok());
  CHECK(Decode(FindIndex(0), segment, {}, &again).ok());
  CHECK(first == again);
  CHECK(IsSupport(first, 1000));
  CHECK(Encode(FindIndex(0), segment, first).empty());
  for (int field = 0; field < 3; ++field) {
    Segment changed = segment;
    changed.seed += field == 0;
    changed.step += field == 1;
    changed.number += field == 2;
    CHECK(Decode(FindIndex(0), changed, {}, &other).ok());
    CHECK(other != first);
  }
  CHECK(!Decode(FindIndex(0), segment, {1}, &other).ok());
  const Bytes raw = Encode(FindIndex(1), segment, first);
  CHECK(Same(Decode(FindIndex(0), segment, raw, &other).name, "raw indices where the coded form is shorter"));
}

TEST("Raw indices are refused when they repeat, descend, reach the size, or leave padding that is not zero") {
  Segment segment;
  segment.size = 5;  // 3 bits each
  Support two(2);
  const auto decode = [&](int first, int second, int padding) {
    return Decode(FindIndex(1), segment, {static_cast<uint8_t>(first | second << 3 | padding << 6)}, &two);
  };
  CHECK(decode(1, 4, 0).ok());
  CHECK(two == (Support{1, 4}));
  const char* kOrder = "raw indices do not ascend strictly below the size";
  CHECK(Same(decode(4, 4, 0).name, kOrder));
  CHECK(Same(decode(3, 2, 0).name, kOrder));
  CHECK(Same(decode(3, 5, 0).name, kOrder));
  CHECK(Same(decode(1, 4, 1).name, "padding bits are not zero"));
  CHECK(Same(Decode(FindIndex(1), segment, {}, &two).name, "FixedWidth has no coded form"));
  CHECK(Same(Decode(FindIndex(1), segment, {1, 2}, &two).name, "index code is longer than raw indices"));
}

TEST("A wrong raw index is reported at its byte") {
  Segment segment;
  segment.size = 256;
  Support three(3);
  CHECK(Decode(FindIndex(1), segment, {1, 9, 3}, &three).position == 2);
}

TEST("A bitmap is refused with the wrong length, bits beyond the size, or another number of bits") {
  Segment segment;
  segment.size = 12;
  Support six(6);
  CHECK(Decode(FindIndex(2), segment, {0x0f, 0x0c}, &six).ok());
  CHECK(six == (Support{0, 1, 2, 3, 10, 11}));
  CHECK(Same(Decode(FindIndex(2), segment, {0x0f}, &six).name, "Bitmap: wrong length"));
  const Error beyond = Decode(FindIndex(2), segment, {0x0f, 0x14}, &six);
  CHECK(Same(beyond.name, "Bitmap: bits beyond the size are set") && beyond.position == 1);
  CHECK(Same(Decode(FindIndex(2), segment, {0x0f, 0x04}, &six).name, "Bitmap: the number of set bits is not the count"));
  CHECK(Same(Decode(FindIndex(2), segment, {0x1f, 0x0c}, &six).name, "Bitmap: the number of set bits is not the count"));
}

TEST("What decodes is what the encoder writes, among all codes of up to two bytes") {
  for (uint8_t id : {2, 4, 5, 6, 7}) {
    for (int64_t size : {2, 5, 9, 16, 300}) {
      for (int64_t count = 1; count < std::min<int64_t>(size, 12); ++count) {
        Segment segment;
        segment.size = size;
        Support indices(static_cast<size_t>(count));
        const auto check = [&](const Bytes& code) {
          if (!Decode(FindIndex(id), segment, code, &indices).ok()) return;
          CHECK(IsSupport(indices, size));
          CHECK(Encode(FindIndex(id), segment, indices) == code);
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
  for (uint8_t id : {2, 4, 5, 6, 7}) {
    for (int64_t count : {900, 20000, 45000, 60000, 99000}) {
      Segment segment;
      segment.size = 100000;
      Support indices = UniformSupport(segment.size, count, 2);
      const Bytes code = Encode(FindIndex(id), segment, indices);
      for (size_t length = 0; length < code.size(); length += 1 + code.size() / 50) {
        CHECK(!Decode(FindIndex(id), segment, Bytes(code.begin(), code.begin() + static_cast<std::ptrdiff_t>(length)), &indices).ok());
      }
      for (uint64_t i = 0; i < 100; ++i) {
        Bytes changed = code;
        changed[RandomBits(1, i) % code.size()] ^= static_cast<uint8_t>(1 << (i & 7));
        if (Decode(FindIndex(id), segment, changed, &indices).ok()) CHECK(Encode(FindIndex(id), segment, indices) == changed);
      }
    }
  }
}

TEST("Raw indices are refused where the codec had a shorter form") {
  Segment segment;
  segment.size = 1000;
  Support indices = UniformSupport(1000, 500, 3);
  const Bytes raw = Encode(FindIndex(1), segment, indices);
  for (uint8_t id : {2, 3, 4, 5, 6, 7, 9})
    CHECK(Same(Decode(FindIndex(id), segment, raw, &indices).name, "raw indices where the coded form is shorter"));
}

}  // namespace
}  // namespace deepreduce::testing
