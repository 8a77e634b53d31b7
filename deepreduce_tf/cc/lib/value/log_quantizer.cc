#include "deepreduce_tf/cc/lib/value/log_quantizer.h"

#include <algorithm>

#include "deepreduce_tf/cc/lib/bits/float_bits.h"
#include "deepreduce_tf/cc/lib/value/level_packing.h"

namespace deepreduce {
namespace {

constexpr uint8_t kTable = 1 << 4;
constexpr uint8_t kZeros = 1 << 5;
constexpr int kMaxLevels = 1 << 8;
constexpr uint32_t kOneBits = 0x3f800000;

// What the first byte says.
struct Form {
  int bits;
  bool zeros;  // the segment holds zeros
  int bins;
  size_t values;
  bool table;

  Form(int bits, bool zeros, size_t values)
      : bits(bits), zeros(zeros), bins((1 << (bits - 1)) - (zeros ? 1 : 0)), values(values), table(TableRule()) {}
  bool TableRule() const { return values >= 16 * static_cast<size_t>(bins); }
  uint8_t Byte() const { return static_cast<uint8_t>(bits | (table ? kTable : 0) | (zeros ? kZeros : 0)); }
  size_t LevelsStart() const { return 1 + sizeof(float) * static_cast<size_t>(table ? bins : 2); }
};

// Of the magnitudes that are not zero, as bits. Without any, lowest > highest. Below 2^-126 counts as zero.
struct Range {
  int32_t lowest = kMagnitudeBits;
  int32_t highest = 0;
  bool zeros = false;
};

Range FindRange(Span<const float> values) {
  int32_t smallest = kMagnitudeBits;
  int32_t lowest = kMagnitudeBits;
  int32_t highest = 0;
  for (float value : values) {
    const int32_t bits = MagnitudeBits(value);
    const int32_t low = bits < kSmallestNormalBits ? kMagnitudeBits : bits;
    smallest = bits < smallest ? bits : smallest;
    lowest = low < lowest ? low : lowest;
    highest = bits > highest ? bits : highest;
  }
  return {lowest, highest, smallest < kSmallestNormalBits};
}

// floor((x - lo) * bins / (hi - lo + 1)) in double: half of the smallest distance to the next integer is added, which is far more than
// the rounding of product and quotient, so the result is exact.
void Quantize(Span<const float> block, const Form& form, const Range& range, uint8_t* levels) {
  const double span = static_cast<double>(int64_t{range.highest} - range.lowest + 1);
  const double ratio = form.bins / span;
  const double half = 0.5 / span;
  const int32_t first = form.zeros ? 1 : 0;
  for (size_t i = 0; i < block.size; ++i) {
    const int32_t bits = MagnitudeBits(block[i]);
    const bool zero = bits < kSmallestNormalBits;
    const int32_t offset = zero ? 0 : bits - range.lowest;
    const int32_t bin = static_cast<int32_t>(offset * ratio + half) + first;
    const int32_t sign = static_cast<int32_t>(BitsOf(block[i]) >> 31) << (form.bits - 1);
    levels[i] = static_cast<uint8_t>(zero ? 0 : bin | sign);
  }
}

// Sums of the magnitudes at each level. Four of each, so that a sum seldom waits for itself.
class Means {
 public:
  void Add(Span<const float> block, const uint8_t* levels, int level_mask) {
    for (size_t i = 0; i < block.size; ++i) {
      const int level = levels[i] & level_mask;
      sums_[i & 3][level] += static_cast<double>(FloatOf(static_cast<uint32_t>(MagnitudeBits(block[i]))));
      ++counts_[i & 3][level];
    }
  }
  float At(int level) const {
    int64_t count = 0;
    double sum = 0;
    for (int k = 0; k < 4; ++k) {
      count += counts_[k][level];
      sum += sums_[k][level];
    }
    return count == 0 ? 0.0f : static_cast<float>(sum / static_cast<double>(count));
  }

 private:
  double sums_[4][kMaxLevels / 2] = {};
  int64_t counts_[4][kMaxLevels / 2] = {};
};

// The value of each level, as bits; kMagnitudeBits, which is no number, where no encoder writes that level.
struct Levels {
  uint32_t bits[kMaxLevels];
};

// False when the bins' values at `code` are not such as an encoder writes.
bool ReadLevels(const Form& form, const uint8_t* code, Levels* levels) {
  const int first = form.zeros ? 1 : 0;
  const int sign = 1 << (form.bits - 1);
  std::fill_n(levels->bits, kMaxLevels, kMagnitudeBits);
  if (form.zeros) levels->bits[0] = 0;
  const auto in_range = [](int64_t bits) { return kSmallestNormalBits <= bits && bits < kInfinityBits; };
  const int64_t lo = BitsOf(LoadFloat(code));
  const int64_t hi = BitsOf(LoadFloat(code + 4 * !form.table));
  if (!form.table && !(in_range(lo) && in_range(hi) && lo <= hi)) return false;
  int64_t before = 0;
  for (int bin = 0; bin < form.bins; ++bin) {
    int64_t bits = lo + (2 * bin + 1) * (hi - lo) / (2 * form.bins);
    if (form.table) {
      bits = BitsOf(LoadFloat(code + 4 * bin));
      if (bits == 0) continue;
      if (!in_range(bits) || bits <= before) return false;
      before = bits;
    }
    levels->bits[first + bin] = static_cast<uint32_t>(bits);
    levels->bits[(first + bin) | sign] = static_cast<uint32_t>(bits) | 0x80000000u;
  }
  return true;
}

// Which levels a segment names.
struct Named {
  bool levels[kMaxLevels] = {};
};

// Returns whether there was a level that no encoder writes.
bool Dequantize(Span<const uint8_t> levels, const Levels& values, float* out, Named* named) {
  uint32_t wrong = 0;
  for (size_t i = 0; i < levels.size; ++i) {
    const uint32_t bits = values.bits[levels[i]];
    wrong |= bits == kMagnitudeBits;
    named->levels[levels[i]] = true;
    out[i] = FloatOf(bits);
  }
  return wrong != 0;
}

// An encoder claims no zeros and no means that the levels do not name; zeros alone have a form of their own.
Error CheckClaims(const Form& form, const uint8_t* code, const Levels& values, const Named& named) {
  const int first = form.zeros ? 1 : 0;
  const int sign = 1 << (form.bits - 1);
  if (form.zeros && !named.levels[0]) return {"LogQuantizer: zeros flag without a zero", 0};
  bool any = false;
  for (int level = first; level < sign; ++level) {
    const bool used = named.levels[level] || named.levels[level | sign];
    if (form.table && !used && values.bits[level] != kMagnitudeBits) {
      return {"LogQuantizer: mean of an empty bin", 1 + 4 * (level - first)};
    }
    any |= used;
  }
  const bool ones = !form.table && BitsOf(LoadFloat(code)) == kOneBits && BitsOf(LoadFloat(code + 4)) == kOneBits;
  if (!any && !ones) return {"LogQuantizer: zeros alone in another form", 0};
  if (any && form.table != form.TableRule()) return {"LogQuantizer: table is missing", 0};
  return {};
}

Error DecodeLevels(const Form& form, Span<const uint8_t> code, Span<float> values) {
  const size_t start = form.LevelsStart();
  if (Error error = CheckLevelBytes(code, start, values.size, form.bits); !error.ok()) return error;
  Levels table;
  if (!ReadLevels(form, code.data + 1, &table)) return {"LogQuantizer: values of the bins out of range or order", 1};
  Named named;
  uint8_t levels[kBlock];
  for (size_t first = 0; first < values.size; first += kBlock) {
    const size_t n = std::min(kBlock, values.size - first);
    const size_t byte = start + PackedLength(first, form.bits);
    UnpackLevels(code.subspan(byte, code.size - byte), form.bits, {levels, n});
    if (Dequantize({levels, n}, table, values.data + first, &named)) {
      return {"LogQuantizer: level of an empty bin or negative zero", static_cast<int64_t>(byte)};
    }
  }
  return CheckClaims(form, code.data + 1, table, named);
}

size_t Encode(const ValueOptions& options, Span<const float> values, Span<uint8_t> code, float* decoded) {
  Range range = FindRange(values);
  Form form(options.bits, range.zeros, values.size);
  if (range.lowest > range.highest) {
    range = {static_cast<int32_t>(kOneBits), static_cast<int32_t>(kOneBits), true};
    form.table = false;
  }
  const size_t start = form.LevelsStart();
  const size_t length = start + PackedLength(values.size, form.bits);
  if (length >= code.size) return kNotShorter;
  code[0] = form.Byte();
  Means means;
  uint8_t levels[kBlock];
  for (size_t first = 0; first < values.size; first += kBlock) {
    const Span<const float> block = values.subspan(first, std::min(kBlock, values.size - first));
    Quantize(block, form, range, levels);
    if (form.table) means.Add(block, levels, (1 << (form.bits - 1)) - 1);
    PackLevels({levels, block.size}, form.bits, code.data + start + PackedLength(first, form.bits));
  }
  if (form.table) {
    for (int bin = 0; bin < form.bins; ++bin) StoreFloat(means.At(bin + (form.zeros ? 1 : 0)), code.data + 1 + 4 * bin);
  } else {
    StoreFloat(FloatOf(static_cast<uint32_t>(range.lowest)), code.data + 1);
    StoreFloat(FloatOf(static_cast<uint32_t>(range.highest)), code.data + 5);
  }
  return DecodeLevels(form, Span<const uint8_t>(code.data, length), Span<float>(decoded, values.size)).ok() ? length : kNotShorter;
}

Error Decode(const ValueOptions&, Span<const uint8_t> code, Span<float> values) {
  if (code.empty()) return {"LogQuantizer: empty code", 0};
  const int bits = code[0] & 15;
  if (bits < 2 || bits > 8 || code[0] >> 6 != 0) return {"LogQuantizer: unknown parameter bits", 0};
  Form form(bits, (code[0] & kZeros) != 0, values.size);
  form.table = (code[0] & kTable) != 0;
  if (form.table && !form.TableRule()) return {"LogQuantizer: table flag against the rule", 0};
  return DecodeLevels(form, code, values);
}

}  // namespace

const ValueCodec kLogQuantizer = {Encode, Decode};

}  // namespace deepreduce
