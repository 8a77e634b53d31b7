#include "deepreduce_tf/cc/lib/value/bfloat16.h"

#include "deepreduce_tf/cc/lib/bits/all_finite.h"
#include "deepreduce_tf/cc/lib/bits/float_bits.h"

namespace deepreduce {
namespace {

// The smallest magnitude that rounds to infinity: half a step above the largest bfloat16.
constexpr int32_t kOverflowBits = 0x7f7f8000;

size_t Encode(const ValueOptions&, Span<const float> values, Span<uint8_t> code, float* decoded) {
  if (MaxMagnitudeBits(values) >= kOverflowBits) return kNotShorter;
  for (size_t i = 0; i < values.size; ++i) {
    const uint32_t bits = BitsOf(values[i]);
    const uint32_t high = (bits + 0x7fffu + (bits >> 16 & 1)) >> 16;
    const uint16_t half = static_cast<uint16_t>(high);
    std::memcpy(code.data + 2 * i, &half, sizeof half);
    decoded[i] = FloatOf(high << 16);
  }
  return 2 * values.size;
}

Error Decode(const ValueOptions&, Span<const uint8_t> code, Span<float> values) {
  if (code.size != 2 * values.size) return {"BFloat16: wrong length", static_cast<int64_t>(code.size)};
  for (size_t i = 0; i < values.size; ++i) {
    uint16_t half;
    std::memcpy(&half, code.data + 2 * i, sizeof half);
    values[i] = FloatOf(uint32_t{half} << 16);
  }
  if (AllFinite(values)) return {};
  size_t i = 0;
  while (MagnitudeBits(values[i]) < kInfinityBits) ++i;
  return {"BFloat16: value is not finite", static_cast<int64_t>(2 * i)};
}

}  // namespace

const ValueCodec kBFloat16 = {Encode, Decode};

}  // namespace deepreduce
