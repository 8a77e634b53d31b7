// Indices of ceil(log2 size) bits each, the raw form of every index codec (docs/format.md, "Index codes"); and fields of one width.
#ifndef DEEPREDUCE_LIB_BITS_RAW_INDICES_H_
#define DEEPREDUCE_LIB_BITS_RAW_INDICES_H_

#include <cstddef>
#include <cstdint>

#include "deepreduce_tf/cc/lib/bits/error.h"
#include "deepreduce_tf/cc/lib/bits/span.h"

namespace deepreduce {

// Whether indices ascend strictly from 0 on and stay below size. Encoders rely on it; whoever takes indices from a user asks first.
bool IsSupport(Span<const int32_t> indices, int64_t size);

// Bits of one raw index.
int IndexWidth(int64_t size);

// Bytes of the raw form; 0 when the code is empty (nothing or everything kept).
size_t RawIndexLength(int64_t count, int64_t size);

// Writes each index in IndexWidth(size) bits; all are below size. `code` holds as many bytes as they take, and kSlack more.
void EncodeRawIndices(int64_t size, Span<const int32_t> indices, uint8_t* code);

// Total: an error, or a support. code.size is RawIndexLength.
Error DecodeRawIndices(int64_t size, Span<const uint8_t> code, Span<int32_t> indices);

// Fields of `width` (0 to 31) bits each, the first of them at `bit` of the code, which holds them all.
void ReadFields(Span<const uint8_t> code, uint64_t bit, int width, Span<int32_t> fields);

}  // namespace deepreduce

#endif  // DEEPREDUCE_LIB_BITS_RAW_INDICES_H_
