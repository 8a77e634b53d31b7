#include "deepreduce_tf/cc/lib/value/qsgd.h"

#include <algorithm>
#include <cmath>

#include "deepreduce_tf/cc/lib/bits/float_bits.h"
#include "deepreduce_tf/cc/lib/bits/random.h"
#include "deepreduce_tf/cc/lib/value/level_packing.h"

namespace deepreduce {
namespace {

constexpr uint8_t kL2 = 1 << 4;

// A level's fields under `bits`.
struct Grid {
  int bits;
  int sign_shift;
  int32_t s;  // largest magnitude

  explicit Grid(int bits) : bits(bits), sign_shift(bits - 1), s((1 << (bits - 1)) - 1) {}
  float Step(float scale) const { return scale / static_cast<float>(s); }
};

size_t Blocks(size_t values) { return (values + kBlock - 1) / kBlock; }
size_t LevelsStart(size_t values) { return 1 + sizeof(float) * Blocks(values); }

float L2Norm(Span<const float> block) {
  // In double no square overflows; four sums, because one would wait for itself.
  double sums[4] = {};
  for (size_t i = 0; i < block.size; ++i) sums[i & 3] += static_cast<double>(block[i]) * static_cast<double>(block[i]);
  return static_cast<float>(std::sqrt((sums[0] + sums[1]) + (sums[2] + sums[3])));
}

// 1 / (1 + w), w the bound of QSGD's variance, where error feedback would not survive the noise otherwise; else 1.
float Shrinkage(const ValueOptions& options) {
  if (!options.l2_norm || !options.contraction) return 1.0f;
  const double s = Grid(options.bits).s;
  const double root = std::sqrt(static_cast<double>(kBlock)) / s;
  return root < 1.0 ? 1.0f : static_cast<float>(1.0 / (1.0 + std::min(root * root, root)));
}

// Whether to round to nearest: an error no larger than the value, where noise could exceed the values. Its square is at most
// kBlock / (4 s^2) of theirs, 2.6 at 4 bits and 0.6 at 5.
bool RoundsToNearest(const ValueOptions& options) { return options.contraction && !options.l2_norm && options.bits <= 4; }

// 32 random bits a value, or one half each.
void MakeNoise(const ValueOptions& options, size_t first, uint32_t (&noise)[kBlock]) {
  if (RoundsToNearest(options)) {
    std::fill_n(noise, kBlock, 0x80000000u);
  } else {
    RandomWords(options.noise_key, first, noise);
  }
}

// Level = |v| / step, rounded up with a probability of the fraction. Fixed point with 23 bits, so rounding is exact.
void Quantize(Span<const float> block, const Grid& grid, float step, const uint32_t* noise, uint8_t* levels) {
  for (size_t i = 0; i < block.size; ++i) {
    const float magnitude = FloatOf(static_cast<uint32_t>(MagnitudeBits(block[i])));
    const int32_t fixed = static_cast<int32_t>(magnitude / step * 8388608.0f);
    int32_t level = (fixed + static_cast<int32_t>(noise[i] >> 9)) >> 23;
    level = level > grid.s ? grid.s : level;  // magnitude / step may be a rounding above s
    const int32_t negative = static_cast<int32_t>(BitsOf(block[i]) >> 31) & static_cast<int32_t>(level != 0);
    levels[i] = static_cast<uint8_t>(level | negative << grid.sign_shift);
  }
}

// Returns whether a level is a zero with a sign.
bool Dequantize(Span<const uint8_t> levels, const Grid& grid, float step, float* values) {
  uint32_t wrong = 0;
  for (size_t i = 0; i < levels.size; ++i) {
    const int32_t level = levels[i] & grid.s;
    const uint32_t negative = levels[i] >> grid.sign_shift;
    const float magnitude = static_cast<float>(level) * step;
    wrong |= static_cast<uint32_t>(level == 0) & negative;
    values[i] = FloatOf(BitsOf(magnitude < kLargestFloat ? magnitude : kLargestFloat) | negative << 31);
  }
  return wrong != 0;
}

size_t Encode(const ValueOptions& options, Span<const float> values, Span<uint8_t> code, float* decoded) {
  const Grid grid(options.bits);
  const size_t start = LevelsStart(values.size);
  const size_t length = start + PackedLength(values.size, grid.bits);
  if (length >= code.size) return kNotShorter;
  code[0] = static_cast<uint8_t>(grid.bits | (options.l2_norm ? kL2 : 0));
  const float shrinkage = Shrinkage(options);
  uint32_t noise[kBlock];
  uint8_t levels[kBlock];
  for (size_t first = 0; first < values.size; first += kBlock) {
    const size_t n = std::min(kBlock, values.size - first);
    const Span<const float> block = values.subspan(first, n);
    const float norm = options.l2_norm ? L2Norm(block) : FloatOf(static_cast<uint32_t>(MaxMagnitudeBits(block)));
    if (MagnitudeBits(norm) >= kInfinityBits) return kNotShorter;
    float scale = norm * shrinkage;
    if (scale < kSmallestScale) {
      scale = 0;
      std::fill_n(levels, n, uint8_t{0});
    } else {
      MakeNoise(options, first, noise);
      Quantize(block, grid, grid.Step(norm), noise, levels);
    }
    StoreFloat(scale, code.data + 1 + first / kBlock * sizeof scale);
    PackLevels({levels, n}, grid.bits, code.data + start + PackedLength(first, grid.bits));
    Dequantize({levels, n}, grid, grid.Step(scale), decoded + first);
  }
  return length;
}

Error Decode(const ValueOptions&, Span<const uint8_t> code, Span<float> values) {
  if (code.empty()) return {"QSGD: empty code", 0};
  const int level_bits = code[0] & 15;
  if (level_bits < 2 || level_bits > 8 || code[0] >> 5 != 0) return {"QSGD: unknown parameter bits", 0};
  const Grid grid(level_bits);
  const size_t start = LevelsStart(values.size);
  if (Error error = CheckLevelBytes(code, start, values.size, grid.bits); !error.ok()) return error;
  uint8_t levels[kBlock];
  for (size_t first = 0; first < values.size; first += kBlock) {
    const size_t n = std::min(kBlock, values.size - first);
    const size_t at = 1 + first / kBlock * sizeof(float);
    const float scale = LoadFloat(code.data + at);
    if (!IsScale(scale)) return {"QSGD: scale out of range", static_cast<int64_t>(at)};
    const size_t byte = start + PackedLength(first, grid.bits);
    UnpackLevels(code.subspan(byte, code.size - byte), grid.bits, {levels, n});
    if (Dequantize({levels, n}, grid, grid.Step(scale), values.data + first)) {
      return {"QSGD: negative zero level", static_cast<int64_t>(byte)};
    }
    if (BitsOf(scale) == 0 && std::any_of(levels, levels + n, [](uint8_t level) { return level != 0; })) {
      return {"QSGD: level that is not zero under scale 0", static_cast<int64_t>(byte)};
    }
  }
  return {};
}

}  // namespace

const ValueCodec kQSGD = {Encode, Decode};

}  // namespace deepreduce
