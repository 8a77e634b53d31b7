// Numbers of 7 bits a byte: docs/format.md, "Table".
#ifndef DEEPREDUCE_LIB_BITS_LEB128_H_
#define DEEPREDUCE_LIB_BITS_LEB128_H_

#include <cstddef>
#include <cstdint>

#include "deepreduce_tf/cc/lib/bits/span.h"

namespace deepreduce {

inline size_t VarintLength(uint32_t value) {
  size_t length = 1;
  for (; value >= 0x80; value >>= 7) ++length;
  return length;
}

inline uint8_t* PutVarint(uint8_t* out, uint32_t value) {
  for (; value >= 0x80; value >>= 7) *out++ = static_cast<uint8_t>(value | 0x80);
  *out++ = static_cast<uint8_t>(value);
  return out;
}

// Advances *position over one number; false when it is cut off, too long or not in its shortest form.
inline bool GetVarint(Span<const uint8_t> bytes, size_t* position, uint32_t* value) {
  uint64_t result = 0;
  for (int shift = 0; shift < 35; shift += 7) {
    if (*position >= bytes.size) return false;
    const uint8_t byte = bytes[(*position)++];
    result |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (byte >= 0x80) continue;
    *value = static_cast<uint32_t>(result);
    return result <= 0xffffffffull && (byte != 0 || shift == 0);
  }
  return false;
}

}  // namespace deepreduce

#endif  // DEEPREDUCE_LIB_BITS_LEB128_H_
