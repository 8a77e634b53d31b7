// The gaps between the places of a support, or of its complement where that is the smaller one (docs/format/index_codes.md, "Gaps").
#ifndef DEEPREDUCE_LIB_INDEX_GAPS_H_
#define DEEPREDUCE_LIB_INDEX_GAPS_H_

#include <cstdint>

#include "deepreduce_tf/cc/lib/bits/span.h"
#include "deepreduce_tf/cc/lib/index/bitmap.h"

namespace deepreduce {

// What the bytes code: `n` gaps, with sum at most `room`, of the support or of its complement.
struct Gaps {
  bool complement;
  uint64_t n;
  uint64_t room;

  Gaps(uint64_t count, int64_t size) : complement(2 * count > static_cast<uint64_t>(size)) {
    n = complement ? static_cast<uint64_t>(size) - count : count;
    room = static_cast<uint64_t>(size) - n;
  }
};

template <class Visit>
void ForEachGap(const Gaps& gaps, Span<const int32_t> indices, int64_t size, Visit visit) {
  if (!gaps.complement) {
    visit(static_cast<uint32_t>(indices[0]));
    for (size_t j = 1; j < indices.size; ++j) visit(static_cast<uint32_t>(indices[j] - indices[j - 1] - 1));
    return;
  }
  int64_t next = 0;
  ForEachWord(indices, size, [&](int64_t base, uint64_t word) {
    uint64_t absent = ~word;
    if (size - base < 64) absent &= (uint64_t{1} << (size - base)) - 1;
    for (; absent != 0; absent &= absent - 1) {
      const int64_t place = base + __builtin_ctzll(absent);
      visit(static_cast<uint32_t>(place - next));
      next = place + 1;
    }
  });
}

// Takes gap j as the distance of `total` gaps so far; both kinds of support follow from j and that sum alone.
struct SupportSink {
  int32_t* out;

  void Take(uint64_t j, uint64_t, uint64_t total) { out[j] = static_cast<int32_t>(total + j); }
  void Finish(uint64_t, uint64_t) {}
};

struct ComplementSink {
  int32_t* out;
  uint64_t count;

  // Kept place number t has j absent ones before it.
  void Take(uint64_t j, uint64_t before, uint64_t total) {
    uint64_t t = before;
    if (before + 4 <= count) {  // Most runs are short: four stores cost less than a branch that is guessed wrong.
      for (uint64_t k = 0; k < 4; ++k) out[before + k] = static_cast<int32_t>(before + k + j);
      t += 4;
    }
    for (; t < total; ++t) out[t] = static_cast<int32_t>(t + j);
  }
  void Finish(uint64_t n, uint64_t total) {
    for (uint64_t t = total; t < count; ++t) out[t] = static_cast<int32_t>(t + n);
  }
};

}  // namespace deepreduce

#endif  // DEEPREDUCE_LIB_INDEX_GAPS_H_
