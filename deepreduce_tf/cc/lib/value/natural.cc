#include "deepreduce_tf/cc/lib/value/natural.h"

#include <algorithm>

#include "deepreduce_tf/cc/lib/bits/bit_stream.h"
#include "deepreduce_tf/cc/lib/bits/float_bits.h"
#include "deepreduce_tf/cc/lib/bits/random.h"
#include "deepreduce_tf/cc/lib/value/level_packing.h"

namespace deepreduce {
namespace {

constexpr size_t kHeaderLength = 2;
constexpr uint8_t kZeros = 1 << 4;
constexpr int kFraction = 23;          // bits of a float32 below its exponent
constexpr int32_t kMaxExponent = 254;  // 2^127, as the exponent of a float32 is stored
constexpr int32_t kMaxOffset = 126;    // that and a level for zeros fit in 7 bits

// The exponents of the values that are not zero. highest = 0: there are none.
struct Range {
  int32_t lowest = kMaxExponent;
  int32_t highest = 0;
  bool zeros = false;

  void Add(const Range& other) {
    lowest = std::min(lowest, other.lowest);
    highest = std::max(highest, other.highest);
    zeros |= other.zeros;
  }
};

// Of a level, sign included.
int WidthOf(int32_t highest_level) { return 1 + BitWidth(static_cast<uint64_t>(highest_level)); }

// Signed: that is what the vectors of older CPUs compare.
int32_t ExponentOf(float value) { return MagnitudeBits(value) >> kFraction; }

// To a power of two, up with a probability of the fraction: adding 23 random bits carries into the exponent just as often. Denormal numbers
// become zeros.
void Round(Span<const float> block, const uint32_t* noise, float* rounded) {
  for (size_t i = 0; i < block.size; ++i) {
    const int32_t magnitude = MagnitudeBits(block[i]);
    const int32_t carried = (magnitude + static_cast<int32_t>(noise[i] >> 9)) >> kFraction;
    const int32_t exponent = carried < kMaxExponent ? carried : kMaxExponent;
    const uint32_t bits = static_cast<uint32_t>(exponent) << kFraction | (BitsOf(block[i]) & 0x80000000u);
    rounded[i] = FloatOf(magnitude < kSmallestNormalBits ? 0 : bits);
  }
}

// Exponents below `least` become zeros.
Range FindRange(Span<float> rounded, int32_t least) {
  int32_t lowest = kMaxExponent, highest = 0, zeros = 0;
  for (size_t i = 0; i < rounded.size; ++i) {
    const int32_t exponent = ExponentOf(rounded[i]);
    const int32_t present = exponent < least ? kMaxExponent : exponent;
    lowest = present < lowest ? present : lowest;
    highest = exponent > highest ? exponent : highest;
    zeros |= exponent < least ? 1 : 0;
    rounded[i] = FloatOf(exponent < least ? 0 : BitsOf(rounded[i]));
  }
  return {lowest, highest, zeros != 0};
}

void MakeLevels(Span<const float> rounded, const Range& range, int width, uint8_t* levels) {
  const int32_t before = range.lowest - (range.zeros ? 1 : 0);
  for (size_t i = 0; i < rounded.size; ++i) {
    const int32_t exponent = ExponentOf(rounded[i]);
    const uint32_t level = static_cast<uint32_t>(exponent == 0 ? 0 : exponent - before);
    levels[i] = static_cast<uint8_t>(level | BitsOf(rounded[i]) >> 31 << (width - 1));
  }
}

size_t Encode(const ValueOptions& options, Span<const float> values, Span<uint8_t> code, float* decoded) {
  uint32_t noise[kBlock];
  Range range;
  for (size_t first = 0; first < values.size; first += kBlock) {
    RandomWords(options.noise_key, first, noise);
    const Span<const float> block = values.subspan(first, std::min(kBlock, values.size - first));
    Round(block, noise, decoded + first);
    range.Add(FindRange({decoded + first, block.size}, 1));
  }
  if (range.highest == 0) range.lowest = 0;
  if (range.highest - range.lowest > kMaxOffset) range = FindRange({decoded, values.size}, range.highest - kMaxOffset);
  const int width = WidthOf(range.highest - range.lowest + (range.zeros && range.highest > 0 ? 1 : 0));
  const size_t length = kHeaderLength + PackedLength(values.size, width);
  if (length >= code.size) return kNotShorter;
  code[0] = static_cast<uint8_t>(width | (range.zeros ? kZeros : 0));
  code[1] = static_cast<uint8_t>(range.lowest);
  uint8_t levels[kBlock];
  for (size_t first = 0; first < values.size; first += kBlock) {
    const size_t n = std::min(kBlock, values.size - first);
    MakeLevels({decoded + first, n}, range, width, levels);
    PackLevels({levels, n}, width, code.data + kHeaderLength + PackedLength(first, width));
  }
  return length;
}

// What the levels of a code name.
struct Named {
  bool negative_zero = false;
  bool zero = false;
  int32_t lowest = UINT8_MAX;  // of the levels that are not zeros
  int32_t highest = 0;
};

Named Dequantize(Span<const uint8_t> levels, int32_t first, int32_t lowest, int width, float* values) {
  const int32_t mask = (1 << (width - 1)) - 1;
  int32_t wrong = 0, zeros = 0, low = UINT8_MAX, high = 0;
  for (size_t i = 0; i < levels.size; ++i) {
    const int32_t level = levels[i] & mask;
    const int32_t negative = levels[i] >> (width - 1);
    const int32_t present = level < first ? UINT8_MAX : level;
    zeros |= level < first ? 1 : 0;
    wrong |= level < first ? negative : 0;
    low = present < low ? present : low;
    high = level > high ? level : high;
    const uint32_t bits = static_cast<uint32_t>(lowest + level - first) << kFraction | static_cast<uint32_t>(negative) << 31;
    values[i] = FloatOf(level < first ? 0 : bits);
  }
  return {wrong != 0, zeros != 0, low, high};
}

Error Decode(const ValueOptions&, Span<const uint8_t> code, Span<float> values) {
  if (code.size < kHeaderLength) return {"Natural: code ends early", static_cast<int64_t>(code.size)};
  const int width = code[0] & 15;
  if (width < 1 || width > 8 || code[0] >> 5 != 0) return {"Natural: unknown parameter bits", 0};
  const int32_t first = (code[0] & kZeros) != 0 ? 1 : 0;
  const int32_t lowest = code[1];
  if (Error error = CheckLevelBytes(code, kHeaderLength, values.size, width); !error.ok()) return error;
  Named all;
  uint8_t levels[kBlock];
  for (size_t start = 0; start < values.size; start += kBlock) {
    const size_t n = std::min(kBlock, values.size - start);
    const size_t byte = kHeaderLength + PackedLength(start, width);
    UnpackLevels(code.subspan(byte, code.size - byte), width, {levels, n});
    const Named named = Dequantize({levels, n}, first, lowest, width, values.data + start);
    if (named.negative_zero) return {"Natural: negative zero", static_cast<int64_t>(byte)};
    all = {false, all.zero || named.zero, std::min(all.lowest, named.lowest), std::max(all.highest, named.highest)};
  }
  if (first == 1 && !all.zero) return {"Natural: zeros flag without a zero", 0};
  const bool zeros_alone = all.lowest == UINT8_MAX;
  if (zeros_alone ? lowest != 0 : lowest == 0 || all.lowest != first) return {"Natural: smallest exponent of no value", 1};
  if (all.highest > kMaxOffset + first || lowest + all.highest > kMaxExponent + first) return {"Natural: exponent out of range", 1};
  if (WidthOf(all.highest) != width) return {"Natural: levels wider than needed", 0};
  return {};
}

}  // namespace

const ValueCodec kNatural = {Encode, Decode};

}  // namespace deepreduce
