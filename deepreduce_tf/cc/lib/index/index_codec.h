// Index codecs: the support of one segment to bytes and back. The bytes are defined in docs/format/index_codes.md.
#ifndef DEEPREDUCE_LIB_INDEX_INDEX_CODEC_H_
#define DEEPREDUCE_LIB_INDEX_INDEX_CODEC_H_

#include <cstddef>
#include <cstdint>

#include "deepreduce_tf/cc/lib/bits/error.h"
#include "deepreduce_tf/cc/lib/bits/limits.h"
#include "deepreduce_tf/cc/lib/bits/span.h"

namespace deepreduce {

// What both sides know about a segment before its code is read.
struct Segment {
  int64_t size = 0;     // places of the dense form, at most 2^31 - 1
  uint32_t seed = 0;    // of the sender
  uint64_t step = 0;    // of the sender
  uint32_t number = 0;  // position in the frame
  // The last two dimensions of its shape. An encoder may use them; a decoder is not told, and never needs them. One column: no structure.
  int64_t rows = 1;
  int64_t columns = 1;
};

struct IndexCodec {
  // The coded form alone: 0 < count < size holds, code.size is the raw length. Returns a length below code.size, or kNotShorter. Null where
  // an encoder has options: EncodeIndices does not take such a codec.
  size_t (*encode)(const Segment& segment, Span<const int32_t> indices, Span<uint8_t> code);
  // Total: any bytes give either an error or exactly indices.size places, ascending strictly, below segment.size.
  Error (*decode)(const Segment& segment, Span<const uint8_t> code, Span<int32_t> indices);
  // Exact length of the coded form, shorter than the raw one or not: a decoder refuses raw indices that had a shorter code. Null for a
  // codec without a raw form, whose code may have any length.
  size_t (*length)(const Segment& segment, Span<const int32_t> indices);
};

// Writes the raw or the coded form, whichever is shorter; returns its length. `code` holds RawIndexLength + kSlack bytes.
size_t EncodeIndices(const IndexCodec& codec, const Segment& segment, Span<const int32_t> indices, uint8_t* code);

// Reads what EncodeIndices wrote. indices.size is the count; it is at most segment.size.
Error DecodeIndices(const IndexCodec& codec, const Segment& segment, Span<const uint8_t> code, Span<int32_t> indices);

}  // namespace deepreduce

#endif  // DEEPREDUCE_LIB_INDEX_INDEX_CODEC_H_
