#include "deepreduce_tf/cc/lib/value/double_exp_fit.h"

#include "deepreduce_tf/cc/lib/value/sorted_curve.h"

namespace deepreduce {
namespace {

size_t Encode(const ValueOptions&, Span<const float> values, Span<uint8_t> code, float* decoded) {
  CurveOptions curve;
  curve.double_exponential = true;
  return EncodeCurve(curve, values, code, decoded);
}

Error Decode(const ValueOptions&, Span<const uint8_t> code, Span<float> values) { return DecodeCurve(true, code, values); }

}  // namespace

const ValueCodec kDoubleExpFit = {Encode, Decode};

}  // namespace deepreduce
