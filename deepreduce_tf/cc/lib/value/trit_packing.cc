#include "deepreduce_tf/cc/lib/value/trit_packing.h"

namespace deepreduce {
namespace {

struct Digits {
  uint8_t of[kTritCodes][kTritsPerByte];
};

constexpr Digits MakeDigits() {
  Digits digits = {};
  for (int byte = 0; byte < kTritCodes; ++byte) {
    int rest = byte;
    for (size_t i = 0; i < kTritsPerByte; ++i, rest /= 3) digits.of[byte][i] = static_cast<uint8_t>(rest % 3);
  }
  return digits;
}

constexpr Digits kDigits = MakeDigits();

}  // namespace

void PackTrits(Span<const uint8_t> trits, uint8_t* packed) {
  const size_t whole = trits.size / kTritsPerByte;
  for (size_t i = 0; i < whole; ++i) {
    const uint8_t* t = trits.data + kTritsPerByte * i;
    packed[i] = static_cast<uint8_t>(t[0] + 3 * t[1] + 9 * t[2] + 27 * t[3] + 81 * t[4]);
  }
  int last = 0;
  for (size_t i = trits.size; i > kTritsPerByte * whole; --i) last = 3 * last + trits[i - 1];
  if (trits.size > kTritsPerByte * whole) packed[whole] = static_cast<uint8_t>(last);
}

void TritValues(Span<const uint8_t> trits, float scale, float* values) {
  const uint32_t bits = BitsOf(scale);
  for (size_t i = 0; i < trits.size; ++i) {
    const uint32_t trit = trits[i];
    values[i] = FloatOf(trit == 0 ? 0 : bits | trit >> 1 << 31);
  }
}

bool UnpackTrits(uint8_t byte, float scale, Span<float> values) {
  if (byte >= kTritCodes || (byte != 0 && BitsOf(scale) == 0)) return false;
  const uint8_t* digits = kDigits.of[byte];
  const float value_of[] = {0.0f, scale, -scale};
  if (values.size == kTritsPerByte) {
    for (size_t i = 0; i < kTritsPerByte; ++i) values[i] = value_of[digits[i]];
    return true;
  }
  bool beyond = false;
  for (size_t i = 0; i < kTritsPerByte; ++i) {
    if (i < values.size) values[i] = value_of[digits[i]];
    beyond |= i >= values.size && digits[i] != 0;
  }
  return !beyond;
}

}  // namespace deepreduce
