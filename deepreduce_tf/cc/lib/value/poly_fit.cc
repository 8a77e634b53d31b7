#include "deepreduce_tf/cc/lib/value/poly_fit.h"

#include "deepreduce_tf/cc/lib/value/sorted_curve.h"

namespace deepreduce {
namespace {

size_t Encode(const ValueOptions& options, Span<const float> values, Span<uint8_t> code, float* decoded) {
  CurveOptions curve;
  curve.degree = options.degree;
  curve.pieces = options.pieces;
  return EncodeCurve(curve, values, code, decoded);
}

Error Decode(const ValueOptions&, Span<const uint8_t> code, Span<float> values) { return DecodeCurve(false, code, values); }

}  // namespace

const ValueCodec kPolyFit = {Encode, Decode};

}  // namespace deepreduce
