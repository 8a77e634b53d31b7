#include "deepreduce_tf/cc/lib/value/float32.h"

namespace deepreduce {
namespace {

size_t Encode(const ValueOptions&, Span<const float>, Span<uint8_t>, float*) { return kNotShorter; }

Error Decode(const ValueOptions&, Span<const uint8_t> code, Span<float>) {
  return {"Float32 has no coded form", static_cast<int64_t>(code.size)};
}

}  // namespace

const ValueCodec kFloat32 = {Encode, Decode};

}  // namespace deepreduce
