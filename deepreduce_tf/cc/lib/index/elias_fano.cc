#include "deepreduce_tf/cc/lib/index/elias_fano.h"

#include "deepreduce_tf/cc/lib/bits/bit_stream.h"
#include "deepreduce_tf/cc/lib/bits/raw_indices.h"

namespace deepreduce {
namespace {

// All of it follows from size and count, so the length does too.
struct Layout {
  int low;        // low bits of each place
  uint64_t high;  // bits of the unary part: a one for each place, a zero for each step of its high part
  size_t length;  // of the whole code, in bytes

  Layout(uint64_t count, int64_t size) : low(0) {
    while (count << (low + 1) <= static_cast<uint64_t>(size)) ++low;
    high = count + (static_cast<uint64_t>(size - 1) >> low);
    length = static_cast<size_t>((high + count * static_cast<uint64_t>(low) + 7) / 8);
  }
};

size_t Length(const Segment& segment, Span<const int32_t> indices) { return Layout(indices.size, segment.size).length; }

size_t Encode(const Segment& segment, Span<const int32_t> indices, Span<uint8_t> code) {
  const Layout layout(indices.size, segment.size);
  if (layout.length >= code.size) return kNotShorter;
  BitWriter writer(code.data);
  uint64_t begin = 0, field = 0;  // bits [begin, begin + kMaxField) of the unary part
  const auto advance = [&](uint64_t bit) {
    for (; bit - begin >= kMaxField; begin += kMaxField) {
      writer.Put(field, kMaxField);
      field = 0;
    }
  };
  for (size_t j = 0; j < indices.size; ++j) {
    const uint64_t bit = (static_cast<uint64_t>(indices[j]) >> layout.low) + j;
    advance(bit);
    field |= uint64_t{1} << (bit - begin);
  }
  advance(layout.high);
  writer.Put(field, static_cast<int>(layout.high - begin));
  const uint32_t mask = (1u << layout.low) - 1;
  for (int32_t index : indices) writer.Put(static_cast<uint32_t>(index) & mask, layout.low);
  writer.Finish();
  return layout.length;
}

// Calls visit(bit, word) for each 64 bits of the unary part; what follows it is left out of the last word.
template <class Visit>
void ForEachUnaryWord(Span<const uint8_t> code, uint64_t high, Visit visit) {
  for (uint64_t bit = 0; bit < high; bit += 64) {
    uint64_t word = LoadWordWithin(code, bit / 8);
    if (high - bit < 64) word &= (uint64_t{1} << (high - bit)) - 1;
    visit(bit, word);
  }
}

Error Decode(const Segment& segment, Span<const uint8_t> code, Span<int32_t> indices) {
  const Layout layout(indices.size, segment.size);
  if (code.size != layout.length) return {"EliasFano: wrong length", static_cast<int64_t>(code.size)};
  const BitReader end(code, layout.high + indices.size * static_cast<uint64_t>(layout.low));
  if (Error error = end.Finish(); !error.ok()) return error;
  uint64_t count = 0;
  ForEachUnaryWord(code, layout.high, [&](uint64_t, uint64_t word) { count += CountBits(word); });
  if (count != indices.size) return {"EliasFano: the number of set bits is not the count", 0};
  ReadFields(code, layout.high, layout.low, indices);
  // Bit number b, the j-th that is set, follows b - j zeros. There are (size - 1) >> low zeros, so a place stays below 2^31.
  int32_t* next = indices.data;
  ForEachUnaryWord(code, layout.high, [&, low = layout.low](uint64_t bit, uint64_t word) {
    uint32_t zeros = static_cast<uint32_t>(bit) - static_cast<uint32_t>(next - indices.data);
    for (; word != 0; word &= word - 1, --zeros) {
      *next |= static_cast<int32_t>((zeros + static_cast<uint32_t>(__builtin_ctzll(word))) << low);
      ++next;
    }
  });
  if (!IsSupport(indices, segment.size)) return {"EliasFano: places do not ascend strictly below the size", 0};
  return {};
}

}  // namespace

const IndexCodec kEliasFano = {Encode, Decode, Length};

}  // namespace deepreduce
