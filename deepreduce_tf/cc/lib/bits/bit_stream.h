// Bit fields in a stream of bytes, packed from the least significant bit upwards (docs/format.md).
#ifndef DEEPREDUCE_LIB_BITS_BIT_STREAM_H_
#define DEEPREDUCE_LIB_BITS_BIT_STREAM_H_

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "deepreduce_tf/cc/lib/bits/error.h"
#include "deepreduce_tf/cc/lib/bits/span.h"

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "words of a code are loaded and stored as they lie in memory");

namespace deepreduce {

// The most bits that one Put or one Peek moves: whole bytes of a 64-bit word beside the 7 bits by which a field may be off.
constexpr int kMaxField = 56;

inline uint64_t LoadWord(const uint8_t* bytes) {
  uint64_t word;
  std::memcpy(&word, bytes, sizeof word);
  return word;
}

// The word at `byte`, which may lie anywhere; beyond the end of the bytes are zeros.
inline uint64_t LoadWordWithin(Span<const uint8_t> bytes, size_t byte) {
  if (byte + 8 <= bytes.size) return LoadWord(bytes.data + byte);
  uint64_t word = 0;
  if (byte < bytes.size) std::memcpy(&word, bytes.data + byte, bytes.size - byte);
  return word;
}

// Portable: a call of the compiler's own popcount costs more without the instruction.
inline uint64_t CountBits(uint64_t word) {
  word -= word >> 1 & 0x5555555555555555u;
  word = (word & 0x3333333333333333u) + (word >> 2 & 0x3333333333333333u);
  return ((word + (word >> 4)) & 0x0f0f0f0f0f0f0f0fu) * 0x0101010101010101u >> 56;
}

// Bits of n below and with its highest one that is set; 0 for 0.
inline int BitWidth(uint64_t n) { return n == 0 ? 0 : 64 - __builtin_clzll(n); }

inline void StoreWord(uint64_t word, uint8_t* bytes) { std::memcpy(bytes, &word, sizeof word); }

// Stores whole words without a branch, so up to 8 bytes beyond the stream are written (kSlack allows for it).
class BitWriter {
 public:
  explicit BitWriter(uint8_t* out) : out_(out) {}

  // `length` <= kMaxField; no bit of `field` above it is set.
  void Put(uint64_t field, int length) {
    word_ |= field << used_;
    used_ += length;
    StoreWord(word_, out_);
    const int whole = used_ & ~7;
    out_ += whole >> 3;
    word_ >>= whole;
    used_ &= 7;
  }

  // Zero-fills the last byte; returns the end of the stream.
  uint8_t* Finish() {
    StoreWord(word_, out_);
    return out_ + (used_ > 0);
  }

 private:
  uint8_t* out_;
  uint64_t word_ = 0;
  int used_ = 0;  // at most 7 between calls
};

// Reads any bytes safely: beyond their end lie zeros, and Finish tells whether a reader went there.
class BitReader {
 public:
  explicit BitReader(Span<const uint8_t> bytes, uint64_t position = 0) : bytes_(bytes), position_(position) {}

  // The next kMaxField bits or more.
  uint64_t Peek() const { return LoadWordWithin(bytes_, position_ >> 3) >> (position_ & 7); }
  void Skip(uint64_t bits) { position_ += bits; }
  void Seek(uint64_t position) { position_ = position; }

  uint64_t position() const { return position_; }
  int64_t byte() const { return static_cast<int64_t>(position_ >> 3); }
  bool past_end() const { return position_ > 8 * static_cast<uint64_t>(bytes_.size); }

  // Everything must have been read, but for zero bits that fill the last byte.
  Error Finish() const {
    const uint64_t end = (position_ + 7) >> 3;
    if (end > bytes_.size) return {"code ends early", static_cast<int64_t>(bytes_.size)};
    if (end < bytes_.size) return {"bytes after the end of the code", static_cast<int64_t>(end)};
    if ((position_ & 7) != 0 && bytes_[end - 1] >> (position_ & 7) != 0) {
      return {"padding bits are not zero", static_cast<int64_t>(end - 1)};
    }
    return {};
  }

 private:
  Span<const uint8_t> bytes_;
  uint64_t position_;
};

}  // namespace deepreduce

#endif  // DEEPREDUCE_LIB_BITS_BIT_STREAM_H_
