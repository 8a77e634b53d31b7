// The order of values on a curve: the positive ones by falling magnitude, then the negative ones by falling magnitude, then zeros; among
// equals the lower index first.
#ifndef DEEPREDUCE_LIB_VALUE_DESCENDING_ORDER_H_
#define DEEPREDUCE_LIB_VALUE_DESCENDING_ORDER_H_

#include <cstddef>
#include <cstdint>

#include "deepreduce_tf/cc/lib/bits/buffer.h"
#include "deepreduce_tf/cc/lib/bits/float_bits.h"
#include "deepreduce_tf/cc/lib/bits/span.h"

namespace deepreduce {

class DescendingOrder {
 public:
  // At most 2^31 - 1 finite values; magnitudes below 2^-126 count as zeros. False when memory runs out.
  bool Sort(Span<const float> values);

  size_t positive() const { return positive_; }
  size_t negative() const { return negative_; }
  // Of the value at place i of the order.
  size_t Index(size_t i) const { return keys_[i] & kIndex; }
  float Magnitude(size_t i) const { return FloatOf(kIndex - static_cast<uint32_t>(keys_[i] >> 31 & kIndex)); }

 private:
  static constexpr uint32_t kIndex = 0x7fffffff;

  Buffer<uint64_t> buffer_;
  const uint64_t* keys_ = nullptr;  // two bits of the part, 31 that fall with the magnitude, 31 of the index
  size_t positive_ = 0, negative_ = 0;
};

}  // namespace deepreduce

#endif  // DEEPREDUCE_LIB_VALUE_DESCENDING_ORDER_H_
