// Whether all values are finite. One version for each CPU level, the same results from each.
#ifndef DEEPREDUCE_LIB_BITS_ALL_FINITE_H_
#define DEEPREDUCE_LIB_BITS_ALL_FINITE_H_

#include <cstddef>

#include "deepreduce_tf/cc/lib/bits/cpu.h"
#include "deepreduce_tf/cc/lib/bits/span.h"

namespace deepreduce {

// Whether no value is NaN or infinite, at the best CPU level.
bool AllFinite(Span<const float> values);

using AllFiniteFunction = bool (*)(const float* values, size_t n);

// Of a level; a CPU that lacks it cannot run it. Null where this build has none.
AllFiniteFunction FindAllFinite(CpuLevel level);

}  // namespace deepreduce

#endif  // DEEPREDUCE_LIB_BITS_ALL_FINITE_H_
