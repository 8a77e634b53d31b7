#include "deepreduce_tf/cc/lib/value/descending_order.h"

#include <algorithm>
#include <utility>

namespace deepreduce {
namespace {

constexpr int kIndexBits = 31;
constexpr int kDigits = 3;  // above the index lie 33 bits
constexpr int kDigitBits = 11;
constexpr size_t kFewKeys = 2048;  // which std::sort orders before the tables below are filled

// By their upper 33 bits, the lowest digit first. Keys begin in the order of their indices, and stay so among equals.
const uint64_t* RadixSort(size_t n, uint64_t* keys, uint64_t* spare) {
  uint32_t starts[kDigits][1 << kDigitBits] = {};
  const auto digit = [](uint64_t key, int d) { return key >> (kIndexBits + d * kDigitBits) & ((1 << kDigitBits) - 1); };
  for (size_t i = 0; i < n; ++i) {
    for (int d = 0; d < kDigits; ++d) ++starts[d][digit(keys[i], d)];
  }
  for (int d = 0; d < kDigits; ++d) {
    uint32_t start = 0;
    for (uint32_t& entry : starts[d]) start += std::exchange(entry, start);
    for (size_t i = 0; i < n; ++i) spare[starts[d][digit(keys[i], d)]++] = keys[i];
    std::swap(keys, spare);
  }
  return keys;
}

}  // namespace

bool DescendingOrder::Sort(Span<const float> values) {
  const size_t n = values.size;
  const bool few = n < kFewKeys;
  buffer_ = AllocateBuffer<uint64_t>(few ? n : 2 * n);
  if (buffer_ == nullptr) return false;
  size_t parts[3] = {};
  for (size_t i = 0; i < n; ++i) {
    const uint32_t magnitude = static_cast<uint32_t>(MagnitudeBits(values[i]));
    const bool zero = magnitude < static_cast<uint32_t>(kSmallestNormalBits);
    const uint64_t part = zero ? 2 : BitsOf(values[i]) >> 31;
    ++parts[part];
    buffer_[i] = part << 62 | static_cast<uint64_t>(kIndex - (zero ? 0 : magnitude)) << kIndexBits | i;
  }
  positive_ = parts[0];
  negative_ = parts[1];
  if (few) std::sort(buffer_.get(), buffer_.get() + n);
  keys_ = few ? buffer_.get() : RadixSort(n, buffer_.get(), buffer_.get() + n);
  return true;
}

}  // namespace deepreduce
