#include "deepreduce_tf/cc/lib/bits/raw_indices.h"

#include <algorithm>

#include "deepreduce_tf/cc/lib/bits/bit_stream.h"

namespace deepreduce {

bool IsSupport(Span<const int32_t> indices, int64_t size) {
  if (indices.empty()) return true;
  uint32_t wrong = indices[0] < 0 || indices[indices.size - 1] >= size;
  for (size_t j = 1; j < indices.size; ++j) wrong |= indices[j - 1] >= indices[j];
  return wrong == 0;
}

int IndexWidth(int64_t size) { return size <= 2 ? 1 : BitWidth(static_cast<uint64_t>(size) - 1); }

size_t RawIndexLength(int64_t count, int64_t size) {
  if (count == 0 || count == size) return 0;
  return static_cast<size_t>((count * IndexWidth(size) + 7) / 8);
}

void EncodeRawIndices(int64_t size, Span<const int32_t> indices, uint8_t* code) {
  const int width = IndexWidth(size);
  BitWriter writer(code);
  for (int32_t index : indices) writer.Put(static_cast<uint32_t>(index), width);
  writer.Finish();
}

void ReadFields(Span<const uint8_t> code, uint64_t bit, int width, Span<int32_t> fields) {
  if (width == 0) {
    std::fill(fields.begin(), fields.end(), 0);
    return;
  }
  const uint64_t step = static_cast<uint64_t>(width);
  const uint64_t mask = (uint64_t{1} << step) - 1;
  // Whole words while they lie within the code, then the last few fields.
  const uint64_t last = code.size < 8 ? 0 : 8 * (code.size - 8);
  const uint64_t whole = last < bit ? 0 : (last - bit) / step;
  size_t j = 0;
  for (; j < fields.size && j < whole; ++j) {
    const uint64_t at = bit + j * step;
    fields[j] = static_cast<int32_t>(LoadWord(code.data + (at >> 3)) >> (at & 7) & mask);
  }
  BitReader reader(code, bit + j * step);
  for (; j < fields.size; ++j) {
    fields[j] = static_cast<int32_t>(reader.Peek() & mask);
    reader.Skip(step);
  }
}

Error DecodeRawIndices(int64_t size, Span<const uint8_t> code, Span<int32_t> indices) {
  const int width = IndexWidth(size);
  ReadFields(code, 0, width, indices);
  if (!IsSupport(indices, size)) {
    size_t j = 0;
    while (indices[j] < size && (j == 0 || indices[j - 1] < indices[j])) ++j;
    return {"raw indices do not ascend strictly below the size", static_cast<int64_t>(j * static_cast<size_t>(width) / 8)};
  }
  return BitReader(code, indices.size * static_cast<uint64_t>(width)).Finish();
}

}  // namespace deepreduce
