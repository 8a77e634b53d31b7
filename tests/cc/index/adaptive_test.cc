// Adaptive: its bytes, what it gains, and what it refuses. And the range coder that it writes with.
#include <algorithm>

#include "deepreduce_tf/cc/lib/bits/leb128.h"
#include "deepreduce_tf/cc/lib/bits/range_coder.h"
#include "tests/cc/check.h"
#include "tests/cc/refuses.h"
#include "tests/cc/samples.h"

namespace deepreduce::testing {
namespace {

Segment Shaped(int64_t size, int64_t rows, int64_t columns) {
  Segment segment;
  segment.size = size;
  segment.rows = rows;
  segment.columns = columns;
  return segment;
}

// Kept by rows and columns that are active to different degrees: about size * ratio places.
Support ActiveSupport(int64_t size, int64_t columns, double ratio, uint64_t seed) {
  Support support;
  for (int64_t place = 0; place < size; ++place) {
    const uint64_t row = static_cast<uint64_t>(place / columns), column = static_cast<uint64_t>(place % columns);
    const double chance = 9 * ratio * std::pow(Uniform(seed, row), 2) * std::pow(Uniform(seed + 1, column), 2);
    if (Uniform(seed + 2, static_cast<uint64_t>(place)) < chance) support.push_back(static_cast<int32_t>(place));
  }
  return support;
}

Error RoundTrip(const Segment& segment, const Support& indices, Bytes* code) {
  *code = Encode(kAdaptive, segment, indices);
  Support decoded(indices.size());
  Segment known = segment;  // A decoder is not told the shape.
  known.rows = known.columns = 1;
  const Error error = Decode(kAdaptive, known, *code, &decoded);
  if (error.ok()) CHECK(decoded == indices);
  return error;
}

Bytes With(Bytes code, size_t byte, uint8_t value) {
  code[byte] = value;
  return code;
}

TEST("The range coder gives back decisions of any probability, and takes their information") {
  for (uint32_t probability : {1u, 2u, 300u, 32768u, 65000u, 65535u}) {
    for (uint64_t share : {0ull, 1ull, 5000ull, 32768ull, 65535ull, 65536ull}) {
      Bytes room(100000);
      RangeEncoder encoder(room);
      double bits = 0;
      const auto answer = [&](uint64_t i) { return (RandomBits(share, i) & 0xffff) < share; };
      for (uint64_t i = 0; i < 20000; ++i) {
        encoder.Put(answer(i), probability);
        bits -= std::log2((answer(i) ? probability : 65536.0 - probability) / 65536);
      }
      room.resize(static_cast<size_t>(encoder.Finish() - room.data()));
      CHECK(!encoder.full());
      CHECK(static_cast<double>(room.size()) <= bits / 8 * 1.01 + 2);
      RangeDecoder decoder(room);
      bool same = true;
      for (uint64_t i = 0; i < 20000; ++i) same &= decoder.Get(probability) == answer(i);
      CHECK(same);
      CHECK(decoder.Finish().ok());
    }
  }
}

TEST("The range coder writes no more than its room, and its carry reaches the bytes before") {
  for (size_t length : {0, 1, 2, 3, 50}) {
    Bytes room(length);
    RangeEncoder encoder(room);
    for (uint64_t i = 0; i < 10000; ++i) encoder.Put(RandomBits(length, i) & 1, 100);
    encoder.Finish();
    CHECK(encoder.full());
  }
  // "No" all the time under the largest probability leads to the upper end: 0xff bytes until the range is left for a carry.
  int carried = 0;
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    Bytes room(64);
    RangeEncoder encoder(room);
    for (uint64_t i = 0; i < 12; ++i) encoder.Put(RandomBits(seed, i) % 9 == 0, 65535);
    for (uint64_t i = 0; i < 12; ++i) encoder.Put(RandomBits(seed, i) & 1, 1);
    room.resize(static_cast<size_t>(encoder.Finish() - room.data()));
    for (size_t i = 1; i < room.size(); ++i) carried += room[i] == 0 && room[i - 1] != 0;
    RangeDecoder decoder(room);
    bool same = true;
    for (uint64_t i = 0; i < 12; ++i) same &= decoder.Get(65535) == (RandomBits(seed, i) % 9 == 0);
    for (uint64_t i = 0; i < 12; ++i) same &= decoder.Get(1) == ((RandomBits(seed, i) & 1) != 0);
    CHECK(same && decoder.Finish().ok());
  }
  CHECK(carried > 0);
}

TEST("Among all codes of three bytes the range decoder takes the ones that the encoder writes") {
  int taken = 0;
  for (uint32_t number = 0; number < 1u << 24; number += 7) {
    const Bytes code = {static_cast<uint8_t>(number >> 16), static_cast<uint8_t>(number >> 8), static_cast<uint8_t>(number)};
    RangeDecoder decoder(code);
    uint8_t room[16];
    RangeEncoder encoder(Span<uint8_t>(room, sizeof room));
    for (uint32_t i = 0; i < 17; ++i) encoder.Put(decoder.Get(30000 + 1000 * i), 30000 + 1000 * i);
    const bool same = encoder.Finish() == room + 3 && std::memcmp(room, code.data(), 3) == 0;
    CHECK(decoder.Finish().ok() == same);
    taken += same;
  }
  CHECK(taken > 1000);
}

TEST("Adaptive writes the bytes of the format page") {
  CHECK(Encode(kAdaptive, Shaped(160, 1, 16), {5, 21, 37, 53, 69, 85, 101, 117, 133, 149}) ==
        (Bytes{0x81, 0x01, 0x10, 0x3a, 0x65, 0xf0, 0x7a}));
  CHECK(Encode(kAdaptive, Shaped(56, 1, 1), {1, 7, 13, 16, 21, 23, 35, 41, 45, 47, 49, 55}) == (Bytes{0x80, 0x49, 0x12, 0x15, 0x8e, 0x79}));
  CHECK(Encode(kAdaptive, Shaped(4096, 1, 1), {5, 20, 28, 61, 70, 90}) == (Bytes{0x03, 0xab, 0x1f, 0x42, 0x70}));
}

TEST("Adaptive gives back any support under any shape, and is never longer than Rice") {
  for (int64_t size : {2, 12, 60, 144, 600, 7200}) {
    for (int64_t columns : {-1, 0, 1, 2, 3, 5, 12, 16, 60, 72, 600, 100000}) {
      for (int64_t rows : {-1, 0, 1, 2, 5, 6, 100}) {
        const Segment segment = Shaped(size, rows, columns);
        for (int64_t percent : {1, 5, 20, 50, 80, 99}) {
          const uint64_t seed = static_cast<uint64_t>(size + columns + percent);
          for (const Support& indices : {UniformSupport(size, std::max<int64_t>(1, size * percent / 100), seed),
                                         ClusteredSupport(size, static_cast<int>(percent), seed),
                                         ActiveSupport(size, std::max<int64_t>(columns, 1), static_cast<double>(percent) / 100, seed)}) {
            Bytes code;
            CHECK(RoundTrip(segment, indices, &code).ok());
            CHECK(code.size() <= Encode(kRice, segment, indices).size());
          }
        }
      }
    }
  }
}

TEST("Adaptive takes large supports of every shape and the largest size") {
  const int64_t most = 0x7fffffff, even = 1 << 30;
  Bytes code;
  for (const Segment& segment : {Shaped(most, 1, 1), Shaped(even, 1 << 15, 1 << 15), Shaped(even, 2, even / 2), Shaped(even, 1, 1000),
                                 Shaped(even, even / 2, 2), Shaped(even, 1 << 20, 1 << 7)}) {
    for (int64_t count : {1, 5, 20000, 300000}) CHECK(RoundTrip(segment, UniformSupport(segment.size, count, 1), &code).ok());
    CHECK(RoundTrip(segment, {0, 1, 2, static_cast<int32_t>(segment.size - 2), static_cast<int32_t>(segment.size - 1)}, &code).ok());
  }
  CHECK(code.size() <= 20);
}

TEST("Adaptive takes less than Rice where columns differ, less still where rows are told, and next to nothing for one column") {
  for (double ratio : {0.01, 0.1}) {
    Support indices;  // 9 kernel positions of the same rows
    for (int32_t position = 0; position < 9; ++position) {
      for (int32_t place : ActiveSupport(10000, 100, ratio, 3)) indices.push_back(10000 * position + place);
    }
    Bytes alone, told;
    CHECK(RoundTrip(Shaped(90000, 900, 100), indices, &alone).ok());
    CHECK(RoundTrip(Shaped(90000, 100, 100), indices, &told).ok());
    CHECK(10 * alone.size() < 9 * Encode(kRice, Shaped(90000, 1, 1), indices).size());
    CHECK(told.size() < alone.size());
    CHECK(alone[0] == 0x81 && told[0] == 0x81);
  }
  Support column;
  for (int32_t line = 0; line < 10000; ++line) column.push_back(100 * line + 37);
  Bytes code;
  CHECK(RoundTrip(Shaped(1000000, 10000, 100), column, &code).ok());
  CHECK(code.size() < 200);
}

TEST("Most changes and all truncations of a tree are refused, and what is accepted is the code of its support") {
  for (const Segment& segment : {Shaped(20000, 1, 1), Shaped(20000, 20, 100)}) {
    Support indices = UniformSupport(segment.size, 6000, 2);
    const Bytes code = Encode(kAdaptive, segment, indices);
    CHECK(code[0] == (segment.columns == 1 ? 0x80 : 0x81));
    for (size_t length = 0; length < code.size(); length += 1 + code.size() / 300) {
      CHECK(!Decode(kAdaptive, segment, Bytes(code.begin(), code.begin() + static_cast<std::ptrdiff_t>(length)), &indices).ok());
    }
    int taken = 0;
    for (uint64_t i = 0; i < 1000; ++i) {
      Bytes changed = code;
      changed[3 + RandomBits(1, i) % (code.size() - 3)] ^= static_cast<uint8_t>(1 << (i & 7));
      if (!Decode(kAdaptive, segment, changed, &indices).ok()) continue;
      ++taken;
      CHECK(Encode(kAdaptive, segment, indices) == changed);
    }
    CHECK(taken < 50);
  }
}

TEST("Adaptive refuses other first bytes, and rows and columns that are no shape") {
  const Support indices = ActiveSupport(1200, 20, 0.1, 3);
  const Bytes code = Encode(kAdaptive, Shaped(1200, 20, 20), indices);
  const size_t count = indices.size();
  CHECK(code[0] == 0x81 && code[1] == 20 && code[2] == 20);
  CHECK(Refuses(kAdaptive, 1200, count, {}, "Adaptive: empty code", 0));
  CHECK(Refuses(kAdaptive, 1200, count, With(code, 0, 0x82), "Adaptive: unknown first byte", 0));
  CHECK(Refuses(kAdaptive, 1200, count, With(code, 0, 0xff), "Adaptive: unknown first byte", 0));
  CHECK(Refuses(kAdaptive, 1200, count, {0x81}, "Adaptive: a malformed number of rows or columns", 1));
  CHECK(Refuses(kAdaptive, 1200, count, {0x81, 20, 0x94}, "Adaptive: a malformed number of rows or columns", 3));
  CHECK(Refuses(kAdaptive, 1200, count, {0x81, 0x94, 0, 20, 0}, "Adaptive: a malformed number of rows or columns", 3));
  for (size_t byte : {1, 2}) {
    for (uint8_t wrong : {0, 7, 120}) {
      CHECK(
          Refuses(kAdaptive, 1200, count, With(code, byte, wrong), "Adaptive: rows and columns that do not fit the size and the count", 1));
    }
  }
  CHECK(Refuses(kAdaptive, 1200, count, With(code, 2, 1), "Adaptive: rows and columns that do not fit the size and the count", 1));
}

TEST("Adaptive refuses more lines or columns than 64 for each place, so memory and time go with the count") {
  for (uint32_t columns : {2u, 1u << 19, 1u << 29, 0x7fffffffu}) {
    Bytes code(16);
    code[0] = 0x81;
    code[1] = 1;
    PutVarint(code.data() + 2, columns);
    CHECK(Refuses(kAdaptive, 1 << 30, 10, code, "Adaptive: rows and columns that do not fit the size and the count", 1));
  }
}

TEST("Adaptive refuses a tree that tells too few places and bytes after its end") {
  const Support indices = ActiveSupport(1200, 20, 0.1, 3);
  Bytes code = Encode(kAdaptive, Shaped(1200, 20, 20), indices);
  const int64_t length = static_cast<int64_t>(code.size());
  code.push_back(0);
  CHECK(Refuses(kAdaptive, 1200, indices.size(), code, "bytes after the end of the code", length));
  CHECK(
      Refuses(kAdaptive, 1200, indices.size(), {0x81, 20, 20, 0xff, 0xff, 0xff, 0xff, 0xff}, "Adaptive: fewer places than the count", 8) ||
      Refuses(kAdaptive, 1200, indices.size(), {0x81, 20, 20, 0xff, 0xff, 0xff, 0xff, 0xff}, "code is beyond the range", 3));
  CHECK(Refuses(kAdaptive, 1200, indices.size(), {0x81, 20, 20, 0xff, 0xff, 0xff, 0xfe}, "Adaptive: fewer places than the count", 7));
}

}  // namespace
}  // namespace deepreduce::testing
