#include "deepreduce_tf/cc/lib/value/tern_grad.h"

#include <algorithm>

#include "deepreduce_tf/cc/lib/bits/float_bits.h"
#include "deepreduce_tf/cc/lib/bits/random.h"
#include "deepreduce_tf/cc/lib/value/trit_packing.h"

namespace deepreduce {
namespace {

constexpr size_t kHeaderLength = sizeof(float);

// A trit is 1 or 2 with a probability of |v| / scale. Fixed point with 23 bits, so rounding is exact.
void Quantize(Span<const float> block, float scale, const uint32_t* noise, uint8_t* trits) {
  for (size_t i = 0; i < block.size; ++i) {
    const float magnitude = FloatOf(static_cast<uint32_t>(MagnitudeBits(block[i])));
    const uint32_t fixed = static_cast<uint32_t>(static_cast<int32_t>(magnitude / scale * 8388608.0f));
    trits[i] = SignedTrit((fixed + (noise[i] >> 9)) >> 23, block[i]);
  }
}

// 1 / (1 + w), w = max |v|_1 / |v|_2^2 - 1: E|Q|^2 = (1 + w) |v|^2 and EQ = v, so Q times s errs by (s^2 (1 + w) - 2s + 1) |v|^2, which is
// least at this s, and then (1 - s) |v|^2.
float Shrinkage(Span<const float> values, float largest) {
  double sums[4] = {}, squares[4] = {};  // four of each, because one would wait for itself
  for (size_t i = 0; i < values.size; ++i) {
    const int32_t bits = MagnitudeBits(values[i]);
    const double magnitude = static_cast<double>(FloatOf(static_cast<uint32_t>(bits < kSmallestNormalBits ? 0 : bits)));
    sums[i & 3] += magnitude;
    squares[i & 3] += magnitude * magnitude;
  }
  const double sum = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  const double square = (squares[0] + squares[1]) + (squares[2] + squares[3]);
  return static_cast<float>(square / (static_cast<double>(largest) * sum));
}

size_t Encode(const ValueOptions& options, Span<const float> values, Span<uint8_t> code, float* decoded) {
  const size_t length = kHeaderLength + PackedTrits(values.size);
  if (length >= code.size) return kNotShorter;
  const float largest = FloatOf(static_cast<uint32_t>(MaxMagnitudeBits(values)));
  float scale = largest;
  if (options.contraction && largest >= kSmallestScale) scale = std::min(largest, largest * Shrinkage(values, largest));
  if (scale < kSmallestScale) scale = 0;
  StoreFloat(scale, code.data);
  uint32_t noise[kTritBlock];
  uint8_t trits[kTritBlock] = {};
  for (size_t first = 0; first < values.size; first += kTritBlock) {
    const Span<const float> block = values.subspan(first, std::min(kTritBlock, values.size - first));
    if (scale != 0) {
      RandomWords(options.noise_key, first, noise);
      Quantize(block, largest, noise, trits);
    }
    PackTrits({trits, block.size}, code.data + kHeaderLength + PackedTrits(first));
    TritValues({trits, block.size}, scale, decoded + first);
  }
  return length;
}

Error Decode(const ValueOptions&, Span<const uint8_t> code, Span<float> values) {
  if (code.size != kHeaderLength + PackedTrits(values.size)) return {"TernGrad: wrong length", static_cast<int64_t>(code.size)};
  const float scale = LoadFloat(code.data);
  if (!IsScale(scale)) return {"TernGrad: scale out of range", 0};
  for (size_t first = 0, byte = kHeaderLength; first < values.size; first += kTritsPerByte, ++byte) {
    const Span<float> five = values.subspan(first, std::min(kTritsPerByte, values.size - first));
    if (!UnpackTrits(code[byte], scale, five)) return {"TernGrad: no five trits", static_cast<int64_t>(byte)};
  }
  return {};
}

}  // namespace

const ValueCodec kTernGrad = {Encode, Decode};

}  // namespace deepreduce
