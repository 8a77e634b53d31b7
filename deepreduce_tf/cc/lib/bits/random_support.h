// A support that both sides draw from a key, so that no index bytes travel: docs/format/index_codes.md, "Seeded support".
#ifndef DEEPREDUCE_LIB_BITS_RANDOM_SUPPORT_H_
#define DEEPREDUCE_LIB_BITS_RANDOM_SUPPORT_H_

#include <cstdint>

#include "deepreduce_tf/cc/lib/bits/span.h"

namespace deepreduce {

// Fills `support` with distinct places below `size`, ascending; support.size is at most `size`. Takes size / 8 bytes of memory; false when
// they are not to be had.
bool RandomSupport(uint64_t key, int64_t size, Span<int32_t> support);

}  // namespace deepreduce

#endif  // DEEPREDUCE_LIB_BITS_RANDOM_SUPPORT_H_
