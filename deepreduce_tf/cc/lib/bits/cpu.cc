#include "deepreduce_tf/cc/lib/bits/cpu.h"

#include <cstdlib>
#include <cstring>

namespace deepreduce {
namespace {

CpuLevel Detect() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return CpuLevel::kAvx512;
  if (__builtin_cpu_supports("avx2")) return CpuLevel::kAvx2;
#endif
  return CpuLevel::kPortable;
}

CpuLevel Limited(CpuLevel best) {
  const char* asked = std::getenv("DEEPREDUCE_CPU_LEVEL");
  if (asked == nullptr) return best;
  if (std::strcmp(asked, "portable") == 0) return CpuLevel::kPortable;
  if (std::strcmp(asked, "avx2") == 0 && best > CpuLevel::kAvx2) return CpuLevel::kAvx2;
  return best;
}

}  // namespace

CpuLevel BestCpuLevel() {
  static const CpuLevel level = Limited(Detect());
  return level;
}

}  // namespace deepreduce
