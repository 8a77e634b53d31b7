// The one pass over a gradient: accumulate and collect the large places. One version per CPU level, the same results from each.
#ifndef DEEPREDUCE_LIB_SELECT_COLLECT_H_
#define DEEPREDUCE_LIB_SELECT_COLLECT_H_

#include <cstddef>
#include <cstdint>

#include "deepreduce_tf/cc/lib/bits/cpu.h"

namespace deepreduce {

// Places that one call of `collect` handles at most; it may write this many entries, and kCollectSlack more.
constexpr size_t kCollectBlock = 8192;
constexpr size_t kCollectSlack = 16;

struct CollectFunctions {
  // residual[i] += gradient[i], kept within the finite floats.
  void (*accumulate)(float* residual, const float* gradient, size_t n);
  // Appends (first + i, values[i]) where the magnitude's bits are at least `least`; returns how many.
  size_t (*collect)(const float* values, size_t n, int32_t first, uint32_t least, int32_t* indices, float* kept);
  // Both in one pass over the memory.
  size_t (*accumulate_and_collect)(float* residual, const float* gradient, size_t n, int32_t first, uint32_t least, int32_t* indices,
                                   float* kept);
};

// Of a level; a CPU that lacks it cannot run them. Null where this build has none.
const CollectFunctions* FindCollectFunctions(CpuLevel level);

// Of the best CPU level.
const CollectFunctions& BestCollectFunctions();

}  // namespace deepreduce

#endif  // DEEPREDUCE_LIB_SELECT_COLLECT_H_
