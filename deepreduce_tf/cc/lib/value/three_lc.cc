#include "deepreduce_tf/cc/lib/value/three_lc.h"

#include <algorithm>

#include "deepreduce_tf/cc/lib/bits/float_bits.h"
#include "deepreduce_tf/cc/lib/value/trit_packing.h"

namespace deepreduce {
namespace {

constexpr size_t kHeaderLength = sizeof(float);
// Bytes that hold no trits stand for runs of 2 to 14 bytes of zeros.
constexpr size_t kShortestRun = 2;
constexpr size_t kLongestRun = 255 - kTritCodes + kShortestRun;

size_t RunOf(uint8_t byte) { return byte < kTritCodes ? byte == 0 : byte - kTritCodes + kShortestRun; }

// Writes packed trits with the runs of zeros among them.
class Writer {
 public:
  explicit Writer(uint8_t* out) : out_(out) {}

  void Put(Span<const uint8_t> packed) {
    for (uint8_t byte : packed) {
      if (byte == 0) {
        if (++zeros_ == kLongestRun) EndRun();
        continue;
      }
      EndRun();
      *out_++ = byte;
    }
  }
  uint8_t* Finish() {
    EndRun();
    return out_;
  }

 private:
  void EndRun() {
    if (zeros_ == 0) return;
    *out_++ = static_cast<uint8_t>(zeros_ == 1 ? 0 : kTritCodes + zeros_ - kShortestRun);
    zeros_ = 0;
  }

  uint8_t* out_;
  size_t zeros_ = 0;
};

// v / scale rounded to nearest: half a scale and more is one.
void Quantize(Span<const float> block, float scale, uint8_t* trits) {
  const int32_t half = MagnitudeBits(scale * 0.5f);
  for (size_t i = 0; i < block.size; ++i) trits[i] = SignedTrit(MagnitudeBits(block[i]) >= half ? 1 : 0, block[i]);
}

size_t Encode(const ValueOptions& options, Span<const float> values, Span<uint8_t> code, float* decoded) {
  if (kHeaderLength + PackedTrits(values.size) >= code.size) return kNotShorter;
  const float largest = FloatOf(static_cast<uint32_t>(MaxMagnitudeBits(values)));
  float scale = std::min(options.multiplier * largest, kLargestFloat);
  if (scale < kSmallestScale) scale = 0;
  StoreFloat(scale, code.data);
  Writer writer(code.data + kHeaderLength);
  uint8_t trits[kTritBlock] = {};
  uint8_t packed[kTritBlock / kTritsPerByte];
  for (size_t first = 0; first < values.size; first += kTritBlock) {
    const Span<const float> block = values.subspan(first, std::min(kTritBlock, values.size - first));
    if (scale != 0) Quantize(block, scale, trits);
    PackTrits({trits, block.size}, packed);
    writer.Put({packed, PackedTrits(block.size)});
    TritValues({trits, block.size}, scale, decoded + first);
  }
  return static_cast<size_t>(writer.Finish() - code.data);
}

Error Decode(const ValueOptions&, Span<const uint8_t> code, Span<float> values) {
  if (code.size < kHeaderLength) return {"ThreeLC: code ends early", static_cast<int64_t>(code.size)};
  const float scale = LoadFloat(code.data);
  if (!IsScale(scale)) return {"ThreeLC: scale out of range", 0};
  size_t filled = 0;
  size_t before = kLongestRun;  // the run before, where it could have gone on
  for (size_t byte = kHeaderLength; byte < code.size; ++byte) {
    const int64_t position = static_cast<int64_t>(byte);
    const size_t left = values.size - filled;
    if (left == 0) return {"ThreeLC: bytes after the end of the code", position};
    const size_t run = RunOf(code[byte]);
    if (run > 0 && before < kLongestRun) return {"ThreeLC: run of zeros that was not joined", position};
    if (run > PackedTrits(left)) return {"ThreeLC: run beyond the values", position};
    const size_t n = std::min(left, kTritsPerByte * std::max<size_t>(run, 1));
    const Span<float> part = values.subspan(filled, n);
    if (run > 0) {
      std::fill_n(part.data, n, 0.0f);
    } else if (!UnpackTrits(code[byte], scale, part)) {
      return {"ThreeLC: no five trits", position};
    }
    filled += n;
    before = run > 0 ? run : kLongestRun;
  }
  if (filled < values.size) return {"ThreeLC: code ends early", static_cast<int64_t>(code.size)};
  return {};
}

}  // namespace

const ValueCodec kThreeLC = {Encode, Decode};

}  // namespace deepreduce
