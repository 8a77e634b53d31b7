// Float32 as bits: comparisons and signs of integers vectorise, and do not depend on how a CPU treats denormal numbers.
#ifndef DEEPREDUCE_LIB_BITS_FLOAT_BITS_H_
#define DEEPREDUCE_LIB_BITS_FLOAT_BITS_H_

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "deepreduce_tf/cc/lib/bits/span.h"

namespace deepreduce {

constexpr int32_t kMagnitudeBits = 0x7fffffff;
constexpr int32_t kInfinityBits = 0x7f800000;
constexpr int32_t kSmallestNormalBits = 0x00800000;
constexpr float kLargestFloat = 0x1.fffffep127f;

inline uint32_t BitsOf(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

inline float FloatOf(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

// What a scale of a code may be beside 0: a multiple of less could be denormal, which depends on how a CPU treats such numbers.
constexpr float kSmallestScale = 0x1p-100f;

// Whether an encoder writes this scale.
inline bool IsScale(float scale) {
  const uint32_t bits = BitsOf(scale);
  return bits == 0 || (bits >= BitsOf(kSmallestScale) && bits < static_cast<uint32_t>(kInfinityBits));
}

// The bits of |value|. As integers they are in the order of the magnitudes.
inline int32_t MagnitudeBits(float value) { return static_cast<int32_t>(BitsOf(value)) & kMagnitudeBits; }

inline int32_t MaxMagnitudeBits(Span<const float> values) {
  int32_t largest = 0;
  for (float value : values) {
    const int32_t bits = MagnitudeBits(value);
    largest = bits > largest ? bits : largest;
  }
  return largest;
}

// The float32 nearest to a number, kept among the positive ones that are neither denormal nor infinite.
inline float PositiveNormal(double number) {
  constexpr double kLowest = 0x1p-126, kHighest = 0x1.fffffep127;
  return static_cast<float>(number < kLowest ? kLowest : number > kHighest ? kHighest : number);
}

inline float LoadFloat(const uint8_t* bytes) {
  float value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

inline void StoreFloat(float value, uint8_t* bytes) { std::memcpy(bytes, &value, sizeof value); }

}  // namespace deepreduce

#endif  // DEEPREDUCE_LIB_BITS_FLOAT_BITS_H_
