// Huffman and DeltaHuffman: their sizes, their bytes, and what they refuse.
#include "tests/cc/check.h"
#include "tests/cc/refuses.h"
#include "tests/cc/samples.h"

namespace deepreduce::testing {
namespace {

Segment OfSize(int64_t size) {
  Segment segment;
  segment.size = size;
  return segment;
}

double BitsOfIndex(const IndexCodec& codec, double density) {
  const int64_t count = std::llround(density * 1e6);
  return 8.0 * static_cast<double>(Encode(codec, OfSize(1000000), UniformSupport(1000000, count, 11)).size()) / static_cast<double>(count);
}

TEST("Huffman writes the bytes of the format page") {
  CHECK(Encode(kHuffman, OfSize(4096), {5, 20, 28, 61, 70, 90}) == (Bytes{0x23, 0x18, 0xf1, 0x74, 0x28, 0xc8, 0x09}));
  CHECK(Encode(kHuffman, OfSize(16), {0, 1, 2, 3, 4}) == (Bytes{0x02}));
}

TEST("DeltaHuffman writes the bytes of the format page") {
  CHECK(Encode(kDeltaHuffman, OfSize(1000000), {3, 259, 260, 1000, 123456}) ==
        (Bytes{0x44, 0x0d, 0xf8, 0x07, 0xd0, 0x78, 0xc0, 0x57, 0xdd, 0x00}));
}

TEST("Huffman stays near the bound of places without structure, DeltaHuffman takes at least 8 bits") {
  CHECK(BitsOfIndex(kHuffman, 0.001) < 1.012 * 11.40);
  CHECK(BitsOfIndex(kHuffman, 0.01) < 1.016 * 8.08);
  CHECK(BitsOfIndex(kHuffman, 0.1) < 1.032 * 4.69);
  CHECK(BitsOfIndex(kHuffman, 0.5) < 1.135 * 2.00);
  CHECK(BitsOfIndex(kDeltaHuffman, 0.01) < 9.63);
  CHECK(BitsOfIndex(kDeltaHuffman, 0.1) < 8.01);
}

TEST("Huffman takes less than Rice where the density changes") {
  Support indices = UniformSupport(1000, 500, 1);
  for (int32_t place : UniformSupport(1000000, 500, 2)) {
    if (place >= 1000) indices.push_back(place);
  }
  const Bytes code = Encode(kHuffman, OfSize(1000000), indices);
  CHECK(10 * code.size() < 8 * Encode(kRice, OfSize(1000000), indices).size());
}

TEST("Regular places cost no more than the table where their gaps are zero") {
  Support all_but_last(999999);
  std::iota(all_but_last.begin(), all_but_last.end(), 0);
  CHECK(Encode(kHuffman, OfSize(1000000), all_but_last).size() == 6);  // one gap of 19 bits
  Support first(400000);
  std::iota(first.begin(), first.end(), 0);
  CHECK(Encode(kHuffman, OfSize(1000000), first).size() == 1);
}

TEST("Gaps at the ends of every class come back") {
  for (const IndexCodec* codec : {&kHuffman, &kDeltaHuffman}) {
    for (int64_t gap :
         {0x0, 0x1, 0x2, 0x3, 0xff, 0x100, 0x101, 0x100ff, 0x10100, 0x10101, 0xffffff, 0x10100ff, 0x1010100, 0x3fffffff, 0x7ffffffd}) {
      const Support indices = {static_cast<int32_t>(gap), 0x7ffffffe};
      Support decoded(2);
      CHECK(Decode(*codec, OfSize(0x7fffffff), Encode(*codec, OfSize(0x7fffffff), indices), &decoded).ok());
      CHECK(decoded == indices);
    }
  }
}

TEST("Huffman and DeltaHuffman refuse what no encoder writes") {
  const char* kAnother = "code table: another one is better";
  CHECK(Refuses(kHuffman, 4096, 6, {0x23, 0x18, 0xf1, 0x74, 0x28, 0xc8}, "code ends early"));
  CHECK(Refuses(kHuffman, 4096, 6, {0x23, 0x18, 0xf1, 0x74, 0x28, 0xc8, 0x09, 0}, "bytes after the end of the code"));
  CHECK(Refuses(kHuffman, 4096, 6, {0x23, 0x18, 0xf1, 0x74, 0x28, 0xc8, 0x89}, "padding bits are not zero"));
  CHECK(Refuses(kDeltaHuffman, 123456, 5, {0x44, 0x0d, 0xf8, 0x07, 0xd0, 0x78, 0xc0, 0x57, 0xdd, 0x00}, "gaps lead beyond the size"));
  CHECK(Refuses(kHuffman, 4096, 6, {}, "code ends early"));
  CHECK(Refuses(kHuffman, 4096, 6, {0xff, 0xff, 0xff, 0xff}, "code table: words are missing"));
  CHECK(Refuses(kHuffman, 4096, 6, {0x20, 0, 0, 0}, "code table: length changes by too much"));
  // Lengths 1, 2, 1: changes 2, 1, -1, numbers 4, 2, 3, as 00 1 00, 0 1 0, 0 1 1.
  CHECK(Refuses(kHuffman, 4096, 6, {0x44, 0x06, 0, 0}, "code table: more words than fit"));
  // Lengths 1, 1: numbers 4, 1, as 00 1 00, 1; then six gaps of 0.
  CHECK(Refuses(kHuffman, 4096, 6, {0x24, 0x00}, kAnother));
  CHECK(Refuses(kDeltaHuffman, 100000, 2, {0x24, 0x00, 0x00}, kAnother));
}

}  // namespace
}  // namespace deepreduce::testing
