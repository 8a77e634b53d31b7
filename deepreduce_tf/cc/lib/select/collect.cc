#include "deepreduce_tf/cc/lib/select/collect.h"

#include <algorithm>
#include <cfloat>
#include <cstring>

#include "deepreduce_tf/cc/lib/bits/cpu_targets.h"

namespace deepreduce {
namespace {

constexpr uint32_t kMagnitude = 0x7fffffffu;

DEEPREDUCE_INLINE uint32_t Bits(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  return bits;
}

DEEPREDUCE_INLINE float Saturate(float x) { return std::min(std::max(x, -FLT_MAX), FLT_MAX); }

// The loops that compilers vectorise for the level of the function they are inlined into.
DEEPREDUCE_INLINE void AccumulateLoop(float* residual, const float* gradient, size_t n) {
  for (size_t i = 0; i < n; ++i) residual[i] = Saturate(residual[i] + gradient[i]);
}

DEEPREDUCE_INLINE size_t CollectLoop(const float* values, size_t n, int32_t first, uint32_t least, int32_t* indices, float* kept) {
  size_t found = 0;
  for (size_t i = 0; i < n; ++i) {
    indices[found] = first + static_cast<int32_t>(i);
    kept[found] = values[i];
    found += (Bits(values[i]) & kMagnitude) >= least;
  }
  return found;
}

void AccumulatePortable(float* residual, const float* gradient, size_t n) { AccumulateLoop(residual, gradient, n); }

size_t CollectPortable(const float* values, size_t n, int32_t first, uint32_t least, int32_t* indices, float* kept) {
  return CollectLoop(values, n, first, least, indices, kept);
}

size_t AccumulateAndCollectPortable(float* residual, const float* gradient, size_t n, int32_t first, uint32_t least, int32_t* indices,
                                    float* kept) {
  AccumulateLoop(residual, gradient, n);
  return CollectLoop(residual, n, first, least, indices, kept);
}

constexpr CollectFunctions kPortableFunctions = {AccumulatePortable, CollectPortable, AccumulateAndCollectPortable};

#if defined(__x86_64__)

DEEPREDUCE_AVX2 void AccumulateAvx2(float* residual, const float* gradient, size_t n) { AccumulateLoop(residual, gradient, n); }

template <bool kAccumulate>
DEEPREDUCE_AVX2 DEEPREDUCE_INLINE size_t CollectAvx2Body(float* residual, const float* gradient, size_t n, int32_t first, uint32_t least,
                                                         int32_t* indices, float* kept) {
  const __m256i magnitude = _mm256_set1_epi32(static_cast<int>(kMagnitude));
  // Magnitudes and `least` fit 31 bits, so the signed comparison serves: m >= least is m > least - 1.
  const __m256i below = _mm256_set1_epi32(static_cast<int>(least) - 1);
  const __m256 most = _mm256_set1_ps(FLT_MAX), fewest = _mm256_set1_ps(-FLT_MAX);
  size_t found = 0, i = 0;
  for (; i + 8 <= n; i += 8) {
    __m256 acc = _mm256_loadu_ps(gradient + i);
    if (kAccumulate) {
      acc = _mm256_min_ps(_mm256_max_ps(_mm256_add_ps(_mm256_loadu_ps(residual + i), acc), fewest), most);
      _mm256_storeu_ps(residual + i, acc);
    }
    const __m256i large = _mm256_cmpgt_epi32(_mm256_and_si256(_mm256_castps_si256(acc), magnitude), below);
    for (unsigned mask = _mm256_movemask_ps(_mm256_castsi256_ps(large)); mask != 0; mask &= mask - 1) {
      const size_t place = i + __builtin_ctz(mask);
      indices[found] = first + static_cast<int32_t>(place);
      kept[found++] = kAccumulate ? residual[place] : gradient[place];
    }
  }
  if (kAccumulate) AccumulateLoop(residual + i, gradient + i, n - i);
  const float* rest = kAccumulate ? residual : gradient;
  return found + CollectLoop(rest + i, n - i, first + static_cast<int32_t>(i), least, indices + found, kept + found);
}

DEEPREDUCE_AVX2 size_t CollectAvx2(const float* values, size_t n, int32_t first, uint32_t least, int32_t* indices, float* kept) {
  return CollectAvx2Body<false>(nullptr, values, n, first, least, indices, kept);
}

DEEPREDUCE_AVX2 size_t AccumulateAndCollectAvx2(float* residual, const float* gradient, size_t n, int32_t first, uint32_t least,
                                                int32_t* indices, float* kept) {
  return CollectAvx2Body<true>(residual, gradient, n, first, least, indices, kept);
}

constexpr CollectFunctions kAvx2Functions = {AccumulateAvx2, CollectAvx2, AccumulateAndCollectAvx2};

DEEPREDUCE_AVX512 void AccumulateAvx512(float* residual, const float* gradient, size_t n) { AccumulateLoop(residual, gradient, n); }

template <bool kAccumulate>
DEEPREDUCE_AVX512 DEEPREDUCE_INLINE size_t CollectAvx512Body(float* residual, const float* gradient, size_t n, int32_t first,
                                                             uint32_t least, int32_t* indices, float* kept) {
  const __m512i magnitude = _mm512_set1_epi32(static_cast<int>(kMagnitude)), bound = _mm512_set1_epi32(static_cast<int>(least));
  const __m512i lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  const __m512 most = _mm512_set1_ps(FLT_MAX), fewest = _mm512_set1_ps(-FLT_MAX);
  size_t found = 0;
  for (size_t i = 0; i < n; i += 16) {
    const __mmask16 valid = n - i >= 16 ? 0xffff : static_cast<__mmask16>((1u << (n - i)) - 1);
    __m512 acc = _mm512_maskz_loadu_ps(valid, gradient + i);
    if (kAccumulate) {
      acc = _mm512_min_ps(_mm512_max_ps(_mm512_add_ps(_mm512_maskz_loadu_ps(valid, residual + i), acc), fewest), most);
      _mm512_mask_storeu_ps(residual + i, valid, acc);
    }
    const __mmask16 large = _mm512_mask_cmpge_epu32_mask(valid, _mm512_and_si512(_mm512_castps_si512(acc), magnitude), bound);
    // Always, since whether a place is kept is hard to predict. Compress into a register and store whole: compressing straight to memory is
    // many times slower on some CPUs.
    const __m512i places = _mm512_add_epi32(lanes, _mm512_set1_epi32(first + static_cast<int32_t>(i)));
    _mm512_storeu_si512(indices + found, _mm512_maskz_compress_epi32(large, places));
    _mm512_storeu_ps(kept + found, _mm512_maskz_compress_ps(large, acc));
    found += __builtin_popcount(large);
  }
  return found;
}

DEEPREDUCE_AVX512 size_t CollectAvx512(const float* values, size_t n, int32_t first, uint32_t least, int32_t* indices, float* kept) {
  return CollectAvx512Body<false>(nullptr, values, n, first, least, indices, kept);
}

DEEPREDUCE_AVX512 size_t AccumulateAndCollectAvx512(float* residual, const float* gradient, size_t n, int32_t first, uint32_t least,
                                                    int32_t* indices, float* kept) {
  return CollectAvx512Body<true>(residual, gradient, n, first, least, indices, kept);
}

constexpr CollectFunctions kAvx512Functions = {AccumulateAvx512, CollectAvx512, AccumulateAndCollectAvx512};

#endif  // __x86_64__

}  // namespace

const CollectFunctions* FindCollectFunctions(CpuLevel level) {
  switch (level) {
#if defined(__x86_64__)
    case CpuLevel::kAvx512:
      return &kAvx512Functions;
    case CpuLevel::kAvx2:
      return &kAvx2Functions;
#endif
    case CpuLevel::kPortable:
      return &kPortableFunctions;
    default:
      return nullptr;
  }
}

const CollectFunctions& BestCollectFunctions() { return *FindCollectFunctions(BestCpuLevel()); }

}  // namespace deepreduce
