// Which instructions this process may use. Speed by dispatch at run time: ranks may have different CPUs, results are the same on all.
#ifndef DEEPREDUCE_LIB_BITS_CPU_H_
#define DEEPREDUCE_LIB_BITS_CPU_H_

namespace deepreduce {

enum class CpuLevel { kPortable, kAvx2, kAvx512 };

// The best level of this CPU, or a lower one that the environment variable DEEPREDUCE_CPU_LEVEL names (portable, avx2, avx512).
CpuLevel BestCpuLevel();

}  // namespace deepreduce

#endif  // DEEPREDUCE_LIB_BITS_CPU_H_
