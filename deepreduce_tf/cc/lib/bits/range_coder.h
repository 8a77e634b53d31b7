// A binary range coder: decisions of given probability, to bytes and back (Martin, "Range encoding: an algorithm for removing redundancy
// from a digitised message", 1979). Integers only. Defined in docs/format/index_codes.md, "Adaptive".
#ifndef DEEPREDUCE_LIB_BITS_RANGE_CODER_H_
#define DEEPREDUCE_LIB_BITS_RANGE_CODER_H_

#include <cstddef>
#include <cstdint>

#include "deepreduce_tf/cc/lib/bits/error.h"
#include "deepreduce_tf/cc/lib/bits/span.h"

namespace deepreduce {

constexpr uint32_t kWholeRange = 0xffffffff;
constexpr uint32_t kLeastRange = 1u << 24;

// The part of the range that a decision's "yes" takes. `probability` in 1 / 65536, from 1 to 65535.
inline uint32_t YesRange(uint32_t range, uint32_t probability) { return (range >> 16) * probability; }

// The first digit of the smallest number with no further ones in an interval that begins at `low`; it is in the interval, since no range is
// less. The digits that went before take the carry.
inline uint64_t LastDigit(uint64_t low) { return (low + kLeastRange - 1) / kLeastRange; }

class RangeEncoder {
 public:
  // Writes at most room.size bytes.
  explicit RangeEncoder(Span<uint8_t> room) : out_(room.begin()), end_(room.end()) {}

  void Put(bool yes, uint32_t probability) {
    const uint32_t part = YesRange(range_, probability);
    if (yes) {
      range_ = part;
    } else {
      low_ += part;
      range_ -= part;
    }
    for (; range_ < kLeastRange; range_ <<= 8) PutByte();
  }

  // Whether the code did not fit; what was put is lost then.
  bool full() const { return full_; }

  // The end of the code.
  uint8_t* Finish() {
    low_ = LastDigit(low_) * kLeastRange;
    PutByte();
    return out_;
  }

 private:
  void PutByte() {
    const uint32_t low = static_cast<uint32_t>(low_);
    if (!full_ && low_ >> 32 != 0) {  // The whole code is a fraction below 1, so a byte takes the carry.
      uint8_t* byte = out_;
      while (++*--byte == 0) continue;
    }
    full_ |= out_ == end_;
    if (!full_) *out_++ = static_cast<uint8_t>(low >> 24);
    low_ = low << 8;
  }

  uint64_t low_ = 0;  // 32 bits and the carry
  uint32_t range_ = kWholeRange;
  bool full_ = false;
  uint8_t* out_;
  uint8_t* end_;
};

// Takes any bytes; beyond their end lie zeros. Finish tells whether an encoder wrote them.
class RangeDecoder {
 public:
  explicit RangeDecoder(Span<const uint8_t> code) : code_(code) {
    for (int i = 0; i < 4; ++i) above_ = above_ << 8 | Next();
    valid_ = above_ < range_;
  }

  bool Get(uint32_t probability) {
    const uint32_t part = YesRange(range_, probability);
    const bool yes = above_ < part;
    range_ = yes ? part : range_ - part;
    above_ = yes ? above_ : above_ - part;
    for (; range_ < kLeastRange; range_ <<= 8) above_ = above_ << 8 | Next();
    return yes;
  }

  size_t position() const { return position_ < code_.size ? position_ : code_.size; }

  // The same decisions give an encoder the same interval. It would have written these very bytes, or they are refused.
  Error Finish() const {
    const size_t length = position_ - 3;
    if (!valid_) return {"code is beyond the range", 0};
    if (code_.size < length) return {"code ends early", static_cast<int64_t>(code_.size)};
    if (code_.size > length) return {"bytes after the end of the code", static_cast<int64_t>(length)};
    const uint32_t last = uint32_t{code_[length - 1]} << 24;
    if (static_cast<uint32_t>(LastDigit(last - above_) * kLeastRange) != last)
      return {"another last byte", static_cast<int64_t>(length - 1)};
    return {};
  }

 private:
  uint32_t Next() {
    const size_t at = position_++;
    return at < code_.size ? code_[at] : 0u;
  }

  Span<const uint8_t> code_;
  size_t position_ = 0;
  uint32_t range_ = kWholeRange;
  uint32_t above_ = 0;  // how far the code lies above the interval's lower end
  bool valid_;
};

}  // namespace deepreduce

#endif  // DEEPREDUCE_LIB_BITS_RANGE_CODER_H_
