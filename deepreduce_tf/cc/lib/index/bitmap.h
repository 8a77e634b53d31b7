// One bit for each element of the dense form, set where it is kept.
#ifndef DEEPREDUCE_LIB_INDEX_BITMAP_H_
#define DEEPREDUCE_LIB_INDEX_BITMAP_H_

#include <cstdint>

#include "deepreduce_tf/cc/lib/bits/span.h"
#include "deepreduce_tf/cc/lib/index/index_codec.h"

namespace deepreduce {

extern const IndexCodec kBitmap;

// Calls visit(base, word) for base = 0, 64, 128, …; bit i of the word is set when base + i is in the support.
template <class Visit>
void ForEachWord(Span<const int32_t> indices, int64_t size, Visit visit) {
  size_t j = 0;
  for (int64_t base = 0; base < size; base += 64) {
    uint64_t word = 0;
    for (; j < indices.size && indices[j] < base + 64; ++j) word |= uint64_t{1} << (indices[j] & 63);
    visit(base, word);
  }
}

}  // namespace deepreduce

#endif  // DEEPREDUCE_LIB_INDEX_BITMAP_H_
