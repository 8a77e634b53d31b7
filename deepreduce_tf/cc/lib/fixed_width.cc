#include "fixed_width.h"

#include "bit_stream.h"

namespace deepreduce {
namespace {

size_t Length(const Segment& segment, Span<const int32_t> indices) {
  return RawIndexLength(static_cast<int64_t>(indices.size), segment.size);
}

size_t Encode(const Segment&, Span<const int32_t>, Span<uint8_t>) { return kNotShorter; }

Error Decode(const Segment&, Span<const uint8_t>, Span<int32_t>) { return {"FixedWidth has no coded form", 0}; }

}  // namespace

const IndexCodec kFixedWidth = {1, "FixedWidth", Encode, Decode, Length};

int IndexWidth(int64_t size) { return size <= 2 ? 1 : 64 - __builtin_clzll(static_cast<uint64_t>(size) - 1); }

void EncodeRawIndices(int64_t size, Span<const int32_t> indices, uint8_t* code) {
  const int width = IndexWidth(size);
  BitWriter writer(code);
  for (int32_t index : indices) writer.Put(static_cast<uint32_t>(index), width);
  writer.Finish();
}

Error DecodeRawIndices(int64_t size, Span<const uint8_t> code, Span<int32_t> indices) {
  const uint64_t width = static_cast<uint64_t>(IndexWidth(size));
  const uint64_t mask = (uint64_t{1} << width) - 1;
  // Whole words while they lie within the code, then the last few indices.
  const size_t whole = code.size < 8 ? 0 : (code.size - 8) * 8 / width;
  size_t j = 0;
  for (; j < indices.size && j < whole; ++j) {
    const uint64_t bit = j * width;
    indices[j] = static_cast<int32_t>(LoadWord(code.data + (bit >> 3)) >> (bit & 7) & mask);
  }
  BitReader reader(code, j * width);
  for (; j < indices.size; ++j) {
    indices[j] = static_cast<int32_t>(reader.Peek() & mask);
    reader.Skip(width);
  }
  if (!IsSupport(indices, size)) {
    for (j = 0; j < indices.size && indices[j] < size && (j == 0 || indices[j - 1] < indices[j]);) ++j;
    return {"raw indices do not ascend strictly below the size", static_cast<int64_t>(j * width / 8)};
  }
  return reader.Finish();
}

}  // namespace deepreduce
