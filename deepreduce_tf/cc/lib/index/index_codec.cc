#include "deepreduce_tf/cc/lib/index/index_codec.h"

#include <numeric>

#include "deepreduce_tf/cc/lib/bits/raw_indices.h"

namespace deepreduce {
size_t EncodeIndices(const IndexCodec& codec, const Segment& segment, Span<const int32_t> indices, uint8_t* code) {
  const size_t raw = RawIndexLength(static_cast<int64_t>(indices.size), segment.size);
  if (raw == 0) return 0;
  const size_t length = codec.encode(segment, indices, Span<uint8_t>(code, raw));
  if (length != kNotShorter) return length;
  EncodeRawIndices(segment.size, indices, code);
  return raw;
}

Error DecodeIndices(const IndexCodec& codec, const Segment& segment, Span<const uint8_t> code, Span<int32_t> indices) {
  const size_t raw = RawIndexLength(static_cast<int64_t>(indices.size), segment.size);
  const bool has_raw = codec.length != nullptr;
  if (code.size > raw && (has_raw || raw == 0)) return {"index code is longer than raw indices", static_cast<int64_t>(raw)};
  if (raw == 0) {
    std::iota(indices.begin(), indices.end(), 0);
    return {};
  }
  if (code.size < raw || !has_raw) return codec.decode(segment, code, indices);
  if (Error error = DecodeRawIndices(segment.size, code, indices); !error.ok()) return error;
  if (codec.length(segment, indices) < raw) return {"raw indices where the coded form is shorter", 0};
  return {};
}

}  // namespace deepreduce
