// RunLength: its bytes, and what it refuses.
#include "tests/cc/check.h"
#include "tests/cc/refuses.h"
#include "tests/cc/samples.h"

namespace deepreduce::testing {
namespace {

constexpr char kTooMany[] = "RunLength: runs lead beyond the size or the count";
constexpr char kEndsEarly[] = "RunLength: code ends inside a run";

TEST("RunLength writes the bytes of the format page") {
  Segment segment;
  segment.size = 100;
  // 3 absent, 5 kept, 1 absent, 2 kept: 4 5 1 2, as 00 1 00, 00 1 10, 1, 0 1 0.
  CHECK(Encode(kRunLength, segment, {3, 4, 5, 6, 7, 9, 10}) == (Bytes{0x84, 0x15}));
  // 97 absent, the others kept: 98, as 000000 1 010001.
  CHECK(Encode(kRunLength, segment, {97, 98, 99}) == (Bytes{0x40, 0x11}));
  // 0 absent, 3 kept: 1 3, as 1, 0 1 1.
  CHECK(Encode(kRunLength, segment, {0, 1, 2}) == (Bytes{0x0d}));
}

TEST("RunLength takes a fraction of what Rice takes where kept places lie together") {
  Segment segment;
  segment.size = 1000000;
  const Support indices = ClusteredSupport(segment.size, 200, 3);
  CHECK(3 * Encode(kRunLength, segment, indices).size() < Encode(kRice, segment, indices).size());
}

TEST("RunLength codes runs of every length") {
  for (int64_t run = 1; run < 0x40000000; run = 2 * run + run % 3) {
    Segment segment;
    segment.size = 0x7fffffff;
    Support indices = {0, 1, static_cast<int32_t>(run) + 1, static_cast<int32_t>(run) + 2, 0x7ffffffe};
    for (const Support& each : {indices, Support(indices.begin() + 2, indices.end()), Support(indices.begin() + 2, indices.end() - 1)}) {
      Support decoded(each.size());
      CHECK(Decode(kRunLength, segment, Encode(kRunLength, segment, each), &decoded).ok());
      CHECK(decoded == each);
    }
  }
}

TEST("RunLength codes a kept run of many places") {
  Segment segment;
  segment.size = 20000000;
  Support indices(19999998);
  std::iota(indices.begin(), indices.end(), 1);
  const Bytes code = Encode(kRunLength, segment, indices);
  CHECK(code.size() == 7);  // 2 and 19999998: 3 + 49 bits
  Support decoded(indices.size());
  CHECK(Decode(kRunLength, segment, code, &decoded).ok());
  CHECK(decoded == indices);
}

TEST("RunLength refuses codes that end early, go on, or leave padding that is not zero") {
  CHECK(Refuses(kRunLength, 100, 7, {}, kEndsEarly, 0));
  CHECK(Refuses(kRunLength, 100, 7, {0x84}, kEndsEarly, 1));
  CHECK(Refuses(kRunLength, 100, 7, {0x84, 0x15, 0x00}, "bytes after the end of the code", 2));
  CHECK(Refuses(kRunLength, 100, 7, {0x84, 0x55}, "padding bits are not zero", 1));
}

TEST("RunLength refuses runs of more places than there are") {
  CHECK(Refuses(kRunLength, 13, 7, {0x40, 0x11}, kTooMany, 1));   // 97 absent
  CHECK(Refuses(kRunLength, 100, 3, {0x84, 0x02}, kTooMany, 1));  // 3 absent, 6 kept
  CHECK(Refuses(kRunLength, 100, 6, {0x84, 0x15}, kTooMany, 1));  // 5 kept, then 2
  CHECK(Refuses(kRunLength, 10, 7, {0x84, 0x15}, "bytes after the end of the code", 1));
}

TEST("RunLength refuses numbers beyond 31 bits, however large") {
  for (size_t zeros : {3, 4, 7, 8, 9, 40, 1000}) {
    Bytes code(4 * zeros, 0);
    code[zeros] = 0x80;
    Segment segment;
    segment.size = 0x7fffffff;
    Support indices(10000);
    CHECK(!Decode(kRunLength, segment, code, &indices).ok());
    CHECK(!Decode(kRunLength, segment, Bytes(zeros, 0), &indices).ok());
  }
}

}  // namespace
}  // namespace deepreduce::testing
