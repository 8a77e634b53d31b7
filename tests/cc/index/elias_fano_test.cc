// EliasFano: its sizes, its bytes, and what it refuses.
#include "tests/cc/check.h"
#include "tests/cc/refuses.h"
#include "tests/cc/samples.h"

namespace deepreduce::testing {
namespace {

TEST("EliasFano takes at most 2 + log2(size / count) bits per index") {
  for (double density = 0.0001; density < 1; density *= 1.17) {
    Segment segment;
    segment.size = 1000000;
    const double count = std::round(1e6 * density);
    const Bytes code = Encode(kEliasFano, segment, UniformSupport(segment.size, static_cast<int64_t>(count), 11));
    CHECK(static_cast<double>(code.size()) <= count * (2 + std::log2(1e6 / count)) / 8 + 1);
  }
}

TEST("EliasFano writes the bytes of the format page") {
  Segment segment;
  segment.size = 50;
  // l = 2, since 8 * 2^2 <= 50. High parts 0 0 1 4 5 5 10 12: of 20 bits 0 1 3 7 9 10 16 19. Low bits 0 3 2 1 1 2 3 1.
  const Bytes code = {0x8b, 0x06, 0xc9, 0x96, 0x07};
  CHECK(Encode(kEliasFano, segment, {0, 3, 6, 17, 21, 22, 43, 49}) == code);
  Support decoded(8);
  CHECK(Decode(kEliasFano, segment, code, &decoded).ok());
  CHECK(decoded == (Support{0, 3, 6, 17, 21, 22, 43, 49}));
}

TEST("EliasFano codes high parts that leave out more than a word") {
  for (int32_t gap : {1, 55, 56, 57, 63, 64, 65, 1000, 90000}) {
    Segment segment;
    segment.size = 100000;
    Support indices(5000);
    std::iota(indices.begin(), indices.end(), 0);
    for (int32_t i = 0; i < 5000; ++i) indices.push_back(5000 + gap + i);
    Support decoded(indices.size());
    const Bytes code = Encode(kEliasFano, segment, indices);
    CHECK(code.size() < RawIndexLength(10000, segment.size));
    CHECK(Decode(kEliasFano, segment, code, &decoded).ok());
    CHECK(decoded == indices);
  }
}

TEST("EliasFano refuses another length and padding that is not zero") {
  for (const Bytes& code : {Bytes{}, Bytes{0x8b, 0x06, 0xc9, 0x96}}) {
    CHECK(Refuses(kEliasFano, 50, 8, code, "EliasFano: wrong length", static_cast<int64_t>(code.size())));
  }
  CHECK(Refuses(kEliasFano, 50, 8, {0x8b, 0x06, 0xc9, 0x96, 0x07, 0x00}, "raw indices do not ascend strictly below the size", 1));
  CHECK(Refuses(kEliasFano, 50, 8, {0x8b, 0x06, 0xc9, 0x96, 0x87}, "padding bits are not zero", 4));
}

TEST("EliasFano refuses another number of set bits in the unary part") {
  for (uint8_t third : {0xc1, 0xcb}) {
    CHECK(Refuses(kEliasFano, 50, 8, {0x8b, 0x06, third, 0x96, 0x07}, "EliasFano: the number of set bits is not the count", 0));
  }
}

TEST("EliasFano refuses low bits that do not ascend or reach the size") {
  const char* kOrder = "EliasFano: indices do not ascend strictly below the size";
  CHECK(Refuses(kEliasFano, 50, 8, {0x8b, 0x06, 0x09, 0x96, 0x07}, kOrder, 0));  // 0 0
  CHECK(Refuses(kEliasFano, 50, 8, {0x8b, 0x06, 0xc9, 0x96, 0x0b}, kOrder, 0));  // 43 50
}

}  // namespace
}  // namespace deepreduce::testing
