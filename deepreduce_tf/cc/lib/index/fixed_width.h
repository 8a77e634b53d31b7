// Indices of ceil(log2 size) bits each: the raw form of every index codec (docs/format/index_codes.md).
#ifndef DEEPREDUCE_LIB_INDEX_FIXED_WIDTH_H_
#define DEEPREDUCE_LIB_INDEX_FIXED_WIDTH_H_

#include <cstddef>
#include <cstdint>

#include "deepreduce_tf/cc/lib/bits/error.h"
#include "deepreduce_tf/cc/lib/bits/span.h"
#include "deepreduce_tf/cc/lib/index/index_codec.h"

namespace deepreduce {

extern const IndexCodec kFixedWidth;

// Bits of one raw index.
int IndexWidth(int64_t size);

// Writes each in IndexWidth(size) bits; all are below size.
void EncodeRawIndices(int64_t size, Span<const int32_t> indices, uint8_t* code);

// Fields of `width` (0 to 31) bits each, the first of them at `bit` of the code, which holds them all.
void ReadFields(Span<const uint8_t> code, uint64_t bit, int width, Span<int32_t> fields);

// code.size is RawIndexLength.
Error DecodeRawIndices(int64_t size, Span<const uint8_t> code, Span<int32_t> indices);

}  // namespace deepreduce

#endif  // DEEPREDUCE_LIB_INDEX_FIXED_WIDTH_H_
