// Values as a falling curve, and the place of each value on it: the codes of PolyFit and DoubleExpFit (docs/format/value_codes.md).
#ifndef DEEPREDUCE_LIB_VALUE_SORTED_CURVE_H_
#define DEEPREDUCE_LIB_VALUE_SORTED_CURVE_H_

#include <cstddef>
#include <cstdint>

#include "deepreduce_tf/cc/lib/bits/error.h"
#include "deepreduce_tf/cc/lib/bits/span.h"
#include "deepreduce_tf/cc/lib/value/curve_pieces.h"

namespace deepreduce {

// As ValueCodec::encode and ValueCodec::decode.
size_t EncodeCurve(const CurveOptions& options, Span<const float> values, Span<uint8_t> code, float* decoded);
Error DecodeCurve(bool double_exponential, Span<const uint8_t> code, Span<float> values);

}  // namespace deepreduce

#endif  // DEEPREDUCE_LIB_VALUE_SORTED_CURVE_H_
