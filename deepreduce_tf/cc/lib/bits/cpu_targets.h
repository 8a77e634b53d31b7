// Functions for one CPU level: DEEPREDUCE_AVX2 and DEEPREDUCE_AVX512 before them, and DEEPREDUCE_INLINE before the loops that they share,
// which a compiler vectorises for the level of the function they are inlined into.
#ifndef DEEPREDUCE_LIB_BITS_CPU_TARGETS_H_
#define DEEPREDUCE_LIB_BITS_CPU_TARGETS_H_

#define DEEPREDUCE_INLINE inline __attribute__((always_inline))

#if defined(__x86_64__)

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"  // of GCC 12 about its own headers
#include <immintrin.h>
#pragma GCC diagnostic pop

#define DEEPREDUCE_AVX2 __attribute__((target("avx2")))
#define DEEPREDUCE_AVX512 __attribute__((target("avx512f")))

#endif  // __x86_64__

#endif  // DEEPREDUCE_LIB_BITS_CPU_TARGETS_H_
