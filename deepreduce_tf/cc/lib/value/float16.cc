#include "deepreduce_tf/cc/lib/value/float16.h"

#include "deepreduce_tf/cc/lib/bits/float_bits.h"

namespace deepreduce {
namespace {

// The smallest magnitude that rounds to infinity: 65520, half a step above the largest binary16.
constexpr int32_t kOverflowBits = 0x477ff000;
// Exponents: binary16 has bias 15, float32 127; 13 bits of the fraction go.
constexpr uint32_t kRebias = (127 - 15) << 23;
constexpr uint32_t kSmallestNormalHalf = 113 << 23;  // 2^-14

uint16_t ToHalf(float value) {
  const uint32_t magnitude = BitsOf(value) & 0x7fffffffu;
  // Below 2^-14 the result is a multiple of 2^-24: adding 0.5, whose own step that is, rounds and aligns. No operand that matters is
  // denormal: those are far below half a step.
  const uint32_t small = BitsOf(FloatOf(magnitude) + 0.5f) - BitsOf(0.5f);
  const uint32_t normal = (magnitude - kRebias + 0xfffu + (magnitude >> 13 & 1)) >> 13;
  const uint32_t half = magnitude < kSmallestNormalHalf ? small : normal;
  return static_cast<uint16_t>(half | (BitsOf(value) >> 16 & 0x8000u));
}

float FromHalf(uint16_t half) {
  const uint32_t magnitude = half & 0x7fffu;
  const uint32_t normal = (magnitude << 13) + kRebias;
  // A denormal is read with the exponent of 2^-14, from which the implied one is taken off again.
  const uint32_t small = BitsOf(FloatOf((magnitude << 13) + kSmallestNormalHalf) - FloatOf(kSmallestNormalHalf));
  return FloatOf((magnitude < 0x400u ? small : normal) | (half & 0x8000u) << 16);
}

size_t Encode(const ValueOptions&, Span<const float> values, Span<uint8_t> code, float* decoded) {
  if (MaxMagnitudeBits(values) >= kOverflowBits) return kNotShorter;
  for (size_t i = 0; i < values.size; ++i) {
    const uint16_t half = ToHalf(values[i]);
    std::memcpy(code.data + 2 * i, &half, sizeof half);
    decoded[i] = FromHalf(half);
  }
  return 2 * values.size;
}

Error Decode(const ValueOptions&, Span<const uint8_t> code, Span<float> values) {
  if (code.size != 2 * values.size) return {"Float16: wrong length", static_cast<int64_t>(code.size)};
  uint32_t wrong = 0;
  for (size_t i = 0; i < values.size; ++i) {
    uint16_t half;
    std::memcpy(&half, code.data + 2 * i, sizeof half);
    wrong |= (half & 0x7c00u) == 0x7c00u;
    values[i] = FromHalf(half);
  }
  if (wrong == 0) return {};
  size_t i = 0;
  while ((code[2 * i + 1] & 0x7cu) != 0x7cu) ++i;
  return {"Float16: value is not finite", static_cast<int64_t>(2 * i)};
}

}  // namespace

const ValueCodec kFloat16 = {Encode, Decode};

}  // namespace deepreduce
