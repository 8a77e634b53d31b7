#include "deepreduce_tf/cc/lib/value/value_codec.h"

#include <cstring>

#include "deepreduce_tf/cc/lib/bits/all_finite.h"

namespace deepreduce {
size_t EncodeValues(const ValueCodec& codec, const ValueOptions& options, Span<const float> values, uint8_t* code, float* decoded) {
  if (values.empty()) return 0;
  const size_t raw = sizeof(float) * values.size;
  if (AllFinite(values)) {
    const size_t length = codec.encode(options, values, Span<uint8_t>(code, raw), decoded);
    if (length != kNotShorter) return length;
  }
  std::memcpy(code, values.data, raw);
  std::memcpy(decoded, values.data, raw);
  return raw;
}

Error DecodeValues(const ValueCodec& codec, const ValueOptions& options, Span<const uint8_t> code, Span<float> values) {
  const size_t raw = sizeof(float) * values.size;
  if (code.size > raw) return {"value code is longer than raw values", static_cast<int64_t>(raw)};
  if (raw == 0) return {};
  if (code.size < raw) return codec.decode(options, code, values);
  std::memcpy(values.data, code.data, raw);
  return {};
}

}  // namespace deepreduce
