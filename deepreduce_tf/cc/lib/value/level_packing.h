// Levels of 1 to 8 bits, packed as docs/format/value_codes.md, "Levels", says.
#ifndef DEEPREDUCE_LIB_VALUE_LEVEL_PACKING_H_
#define DEEPREDUCE_LIB_VALUE_LEVEL_PACKING_H_

#include <cstddef>
#include <cstdint>

#include "deepreduce_tf/cc/lib/bits/error.h"
#include "deepreduce_tf/cc/lib/bits/span.h"

namespace deepreduce {

// Levels are made, packed and read in blocks, so that a block stays in the first cache. A full block ends on a whole byte.
constexpr size_t kBlock = 512;

inline size_t PackedLength(size_t levels, int bits) { return (levels * static_cast<size_t>(bits) + 7) / 8; }

// Writes PackedLength bytes, and up to 8 bytes beyond them (kSlack). Every level is below 2^bits.
void PackLevels(Span<const uint8_t> levels, int bits, uint8_t* packed);

// packed.size is at least PackedLength.
void UnpackLevels(Span<const uint8_t> packed, int bits, Span<uint8_t> levels);

// The part of a code that holds `levels` levels begins at `start`: it must end with the code, unused bits zero.
Error CheckLevelBytes(Span<const uint8_t> code, size_t start, size_t levels, int bits);

}  // namespace deepreduce

#endif  // DEEPREDUCE_LIB_VALUE_LEVEL_PACKING_H_
