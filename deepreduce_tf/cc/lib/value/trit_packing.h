// Trits, five to a byte (docs/format/value_codes.md, "Trits"): 0 is nothing, 1 the scale, 2 the scale with a minus.
#ifndef DEEPREDUCE_LIB_VALUE_TRIT_PACKING_H_
#define DEEPREDUCE_LIB_VALUE_TRIT_PACKING_H_

#include <cstddef>
#include <cstdint>

#include "deepreduce_tf/cc/lib/bits/float_bits.h"
#include "deepreduce_tf/cc/lib/bits/span.h"

namespace deepreduce {

constexpr size_t kTritsPerByte = 5;
constexpr int kTritCodes = 243;  // 3^5; bytes from here on hold no trits
// Trits are made and packed in blocks. A full block fills whole bytes, and takes an even number of draws.
constexpr size_t kTritBlock = 640;

inline size_t PackedTrits(size_t trits) { return (trits + kTritsPerByte - 1) / kTritsPerByte; }

// 0, or 1 with the sign of `value`. (No shift by the sign: few CPUs have one for each lane.)
inline uint8_t SignedTrit(uint32_t kept, float value) { return static_cast<uint8_t>(kept + (kept & BitsOf(value) >> 31)); }

// Writes PackedTrits bytes. The digits that a last byte has too many are 0.
void PackTrits(Span<const uint8_t> trits, uint8_t* packed);

// What trits stand for.
void TritValues(Span<const uint8_t> trits, float scale, float* values);

// What the 1 to 5 trits of `byte` stand for. False for a byte that no encoder writes: 243 and above, or with digits beyond `values`, or
// with digits under scale 0.
bool UnpackTrits(uint8_t byte, float scale, Span<float> values);

}  // namespace deepreduce

#endif  // DEEPREDUCE_LIB_VALUE_TRIT_PACKING_H_
