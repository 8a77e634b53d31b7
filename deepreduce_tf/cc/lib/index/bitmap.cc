#include "deepreduce_tf/cc/lib/index/bitmap.h"

#include "deepreduce_tf/cc/lib/bits/bit_stream.h"

namespace deepreduce {
namespace {

size_t BitmapLength(int64_t size) { return static_cast<size_t>((size + 7) / 8); }

size_t Length(const Segment& segment, Span<const int32_t>) { return BitmapLength(segment.size); }

size_t Encode(const Segment& segment, Span<const int32_t> indices, Span<uint8_t> code) {
  const size_t length = BitmapLength(segment.size);
  if (length >= code.size) return kNotShorter;
  ForEachWord(indices, segment.size, [&](int64_t base, uint64_t word) { StoreWord(word, code.data + base / 8); });
  return length;
}

Error Decode(const Segment& segment, Span<const uint8_t> code, Span<int32_t> indices) {
  if (code.size != BitmapLength(segment.size)) return {"Bitmap: wrong length", static_cast<int64_t>(code.size)};
  BitReader reader(code, static_cast<uint64_t>(segment.size));
  if (Error error = reader.Finish(); !error.ok()) return {"Bitmap: bits beyond the size are set", error.position};
  uint64_t count = 0;
  for (size_t byte = 0; byte < code.size; byte += 8) count += CountBits(LoadWordWithin(code, byte));
  if (count != indices.size) return {"Bitmap: the number of set bits is not the count", 0};
  int32_t* next = indices.data;
  for (size_t byte = 0; byte < code.size; byte += 8) {
    for (uint64_t word = LoadWordWithin(code, byte); word != 0; word &= word - 1) {
      *next++ = static_cast<int32_t>(8 * byte) + __builtin_ctzll(word);
    }
  }
  return {};
}

}  // namespace

const IndexCodec kBitmap = {Encode, Decode, Length};

}  // namespace deepreduce
