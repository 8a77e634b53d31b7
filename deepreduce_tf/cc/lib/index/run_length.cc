#include "deepreduce_tf/cc/lib/index/run_length.h"

#include "deepreduce_tf/cc/lib/bits/bit_stream.h"
#include "deepreduce_tf/cc/lib/bits/gamma_code.h"

namespace deepreduce {
namespace {

constexpr int kMaxZeros = 30;  // of a gamma code

// Calls visit(n) for each number that the code holds: the first run of absent elements plus 1, then the runs in turn, until all kept or all
// absent elements are told.
template <class Visit>
void ForEachNumber(Span<const int32_t> indices, int64_t size, Visit visit) {
  uint64_t absent = static_cast<uint64_t>(size) - indices.size;  // still to be told
  int64_t next = 0;
  for (size_t begin = 0, end = 0; begin < indices.size; begin = end) {
    const uint64_t gap = static_cast<uint64_t>(indices[begin] - next);
    visit(gap + (begin == 0));
    absent -= gap;
    if (absent == 0) return;
    for (end = begin + 1; end < indices.size && indices[end] == indices[end - 1] + 1;) ++end;
    visit(end - begin);
    next = int64_t{indices[end - 1]} + 1;
  }
}

size_t Length(const Segment& segment, Span<const int32_t> indices) {
  uint64_t bits = 0;
  ForEachNumber(indices, segment.size, [&](uint64_t n) { bits += static_cast<uint64_t>(GammaBits(n)); });
  return static_cast<size_t>((bits + 7) / 8);
}

size_t Encode(const Segment& segment, Span<const int32_t> indices, Span<uint8_t> code) {
  const size_t length = Length(segment, indices);
  if (length >= code.size) return kNotShorter;
  BitWriter writer(code.data);
  ForEachNumber(indices, segment.size, [&](uint64_t n) { PutGamma(n, &writer); });
  writer.Finish();
  return length;
}

// The next number; 0 when none up to 2^31 - 1 follows.
uint64_t ReadNumber(BitReader* reader) {
  const uint64_t n = GetGamma(reader, kMaxZeros);
  return reader->past_end() ? 0 : n;
}

Error Decode(const Segment& segment, Span<const uint8_t> code, Span<int32_t> indices) {
  BitReader reader(code);
  uint64_t kept = 0, absent = 0;  // told so far
  const uint64_t all_kept = indices.size, all_absent = static_cast<uint64_t>(segment.size) - indices.size;
  const auto keep = [&](uint64_t end) {
    for (; kept < end; ++kept) indices[kept] = static_cast<int32_t>(kept + absent);
  };
  while (true) {
    uint64_t n = ReadNumber(&reader);
    if (n == 0) break;
    n -= kept == 0;
    if (n > all_absent - absent) break;
    absent += n;
    if (absent == all_absent) {
      keep(all_kept);
      return reader.Finish();
    }
    n = ReadNumber(&reader);
    if (n == 0 || n > all_kept - kept) break;
    keep(kept + n);
    if (kept == all_kept) return reader.Finish();
  }
  if (reader.past_end()) return {"RunLength: code ends inside a run", static_cast<int64_t>(code.size)};
  return {"RunLength: runs lead beyond the size or the count", reader.byte()};
}

}  // namespace

const IndexCodec kRunLength = {Encode, Decode, Length};

}  // namespace deepreduce
