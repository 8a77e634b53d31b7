#include "deepreduce_tf/cc/lib/value/level_packing.h"

#include <cstring>

#include "deepreduce_tf/cc/lib/bits/bit_stream.h"

namespace deepreduce {
namespace {

// Even and odd lanes of 8, 16 and 32 bits.
constexpr uint64_t kEven8 = 0x00ff00ff00ff00ffu;
constexpr uint64_t kEven16 = 0x0000ffff0000ffffu;
constexpr uint64_t kEven32 = 0x00000000ffffffffu;

// Eight bytes to eight levels: neighbours are joined to pairs, pairs to fours, fours to one.
uint64_t Pack8(uint64_t word, int bits) {
  word = (word & kEven8) | (word & ~kEven8) >> (8 - bits);
  word = (word & kEven16) | (word & ~kEven16) >> (16 - 2 * bits);
  return (word & kEven32) | (word & ~kEven32) >> (32 - 4 * bits);
}

uint64_t Unpack8(uint64_t word, int bits) {
  const uint64_t four = (uint64_t{1} << (4 * bits)) - 1;
  word = (word & four) | (word >> (4 * bits) & four) << 32;
  const uint64_t two = ((uint64_t{1} << (2 * bits)) - 1) * 0x0000000100000001u;
  word = (word & two) | (word >> (2 * bits) & two) << 16;
  const uint64_t one = ((uint64_t{1} << bits) - 1) * 0x0001000100010001u;
  return (word & one) | (word >> bits & one) << 8;
}

}  // namespace

void PackLevels(Span<const uint8_t> levels, int bits, uint8_t* packed) {
  size_t i = 0;
  for (; i + 8 <= levels.size; i += 8, packed += bits) StoreWord(Pack8(LoadWord(levels.data + i), bits), packed);
  if (i == levels.size) return;
  uint64_t last = 0;
  std::memcpy(&last, levels.data + i, levels.size - i);
  StoreWord(Pack8(last, bits), packed);
}

void UnpackLevels(Span<const uint8_t> packed, int bits, Span<uint8_t> levels) {
  size_t byte = 0;
  size_t i = 0;
  for (; i + 8 <= levels.size && byte + 8 <= packed.size; i += 8, byte += static_cast<size_t>(bits)) {
    StoreWord(Unpack8(LoadWord(packed.data + byte), bits), levels.data + i);
  }
  BitReader reader(packed, 8 * byte);
  for (; i < levels.size; ++i) {
    levels[i] = static_cast<uint8_t>(reader.Peek() & ((1u << bits) - 1));
    reader.Skip(static_cast<uint64_t>(bits));
  }
}

Error CheckLevelBytes(Span<const uint8_t> code, size_t start, size_t levels, int bits) {
  return BitReader(code, 8 * static_cast<uint64_t>(start) + static_cast<uint64_t>(levels) * static_cast<uint64_t>(bits)).Finish();
}

}  // namespace deepreduce
