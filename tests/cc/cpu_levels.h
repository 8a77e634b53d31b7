// The CPU levels that this machine can run.
#ifndef DEEPREDUCE_TESTS_CPU_LEVELS_H_
#define DEEPREDUCE_TESTS_CPU_LEVELS_H_

#include <vector>

#include "deepreduce_tf/cc/lib/bits/cpu.h"

namespace deepreduce::testing {

inline bool Runs(CpuLevel level) {
#if defined(__x86_64__)
  if (level == CpuLevel::kAvx512) return __builtin_cpu_supports("avx512f") != 0;
  if (level == CpuLevel::kAvx2) return __builtin_cpu_supports("avx2") != 0;
#endif
  return level == CpuLevel::kPortable;
}

inline std::vector<CpuLevel> Levels() {
  std::vector<CpuLevel> levels;
  for (CpuLevel level : {CpuLevel::kPortable, CpuLevel::kAvx2, CpuLevel::kAvx512}) {
    if (Runs(level)) levels.push_back(level);
  }
  return levels;
}

}  // namespace deepreduce::testing

#endif  // DEEPREDUCE_TESTS_CPU_LEVELS_H_
