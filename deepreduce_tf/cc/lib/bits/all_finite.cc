#include "deepreduce_tf/cc/lib/bits/all_finite.h"

#include <algorithm>

#include "deepreduce_tf/cc/lib/bits/cpu_targets.h"
#include "deepreduce_tf/cc/lib/bits/float_bits.h"

namespace deepreduce {
namespace {

// Values between two looks at the answer: a loop without a branch vectorises.
constexpr size_t kBlock = 8192;

DEEPREDUCE_INLINE bool AllFiniteLoop(const float* values, size_t n) {
  uint32_t bad = 0;
  for (size_t i = 0; i < n; ++i) bad |= (BitsOf(values[i]) & kInfinityBits) == kInfinityBits;
  return bad == 0;
}

bool AllFinitePortable(const float* values, size_t n) { return AllFiniteLoop(values, n); }

#if defined(__x86_64__)

DEEPREDUCE_AVX2 bool AllFiniteAvx2(const float* values, size_t n) { return AllFiniteLoop(values, n); }

DEEPREDUCE_AVX512 bool AllFiniteAvx512(const float* values, size_t n) {
  const __m512i exponent = _mm512_set1_epi32(kInfinityBits);
  __mmask16 bad = 0;
  size_t i = 0;
  for (; i + 16 <= n; i += 16) bad |= _mm512_cmpeq_epi32_mask(_mm512_and_si512(_mm512_loadu_si512(values + i), exponent), exponent);
  return bad == 0 && AllFiniteLoop(values + i, n - i);
}

#endif  // __x86_64__

}  // namespace

AllFiniteFunction FindAllFinite(CpuLevel level) {
  switch (level) {
#if defined(__x86_64__)
    case CpuLevel::kAvx512:
      return AllFiniteAvx512;
    case CpuLevel::kAvx2:
      return AllFiniteAvx2;
#endif
    case CpuLevel::kPortable:
      return AllFinitePortable;
    default:
      return nullptr;
  }
}

bool AllFinite(Span<const float> values) {
  const AllFiniteFunction all_finite = FindAllFinite(BestCpuLevel());
  for (size_t first = 0; first < values.size; first += kBlock) {
    if (!all_finite(values.data + first, std::min(kBlock, values.size - first))) return false;
  }
  return true;
}

}  // namespace deepreduce
