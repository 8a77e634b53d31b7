// Index codecs: the support of one segment to bytes and back. The bytes are defined in docs/format/index_codes.md.
//
// A code is empty where nothing or everything is kept. Otherwise it is the coded form of its codec or the raw form (bits/raw_indices.h),
// whichever is shorter, the raw one where they are as long; so it is never longer than RawIndexLength. BloomFilter alone has no raw form.
// EncodeIndices and DecodeIndices hold that rule; an IndexCodec is the coded form.
//
// All memory is the caller's, and none of it is kept. Where a codec needs memory of its own that is not to be had, its decoder gives an
// error, and its encoder does with a form that needs none.
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
  int64_t size = 0;     // elements of the dense form, at most kMaxSize
  uint32_t seed = 0;    // of the sender
  uint64_t step = 0;    // of the sender
  uint32_t number = 0;  // position in the frame
  // The last two dimensions of its shape. An encoder may use them; a decoder is not told, and never needs them. One column: no structure.
  int64_t rows = 1;
  int64_t columns = 1;
};

struct IndexCodec {
  // Writes the coded form and returns its length, which is below code.size; otherwise kNotShorter, and what was written has no meaning.
  // `indices` are a support (IsSupport) with 0 < indices.size < segment.size. code.size is RawIndexLength, and kSlack bytes beyond it may
  // be written too. Null for a codec whose encoder has options; EncodeIndices does not take it.
  size_t (*encode)(const Segment& segment, Span<const int32_t> indices, Span<uint8_t> code);

  // Reads the coded form. Total: any bytes give either an error, or exactly indices.size indices that ascend strictly, below segment.size.
  // A lossless codec accepts only what its encoder writes. Reads nothing beyond `code`. After an error, `indices` have no meaning.
  Error (*decode)(const Segment& segment, Span<const uint8_t> code, Span<int32_t> indices);

  // Exact length of the coded form, shorter than the raw one or not: a decoder refuses raw indices that had a shorter code. Null for a
  // codec without a raw form, whose code may have any length.
  size_t (*length)(const Segment& segment, Span<const int32_t> indices);
};

// Writes the code of a support and returns its length. `indices` are a support, from empty to everything. `code` holds RawIndexLength +
// kSlack bytes.
size_t EncodeIndices(const IndexCodec& codec, const Segment& segment, Span<const int32_t> indices, uint8_t* code);

// Reads what EncodeIndices wrote. indices.size is the count, at most segment.size. Total, as IndexCodec::decode.
Error DecodeIndices(const IndexCodec& codec, const Segment& segment, Span<const uint8_t> code, Span<int32_t> indices);

}  // namespace deepreduce

#endif  // DEEPREDUCE_LIB_INDEX_INDEX_CODEC_H_
