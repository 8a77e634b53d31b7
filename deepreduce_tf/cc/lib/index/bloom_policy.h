// Which of the places that a Bloom filter accepts are the support: docs/format/index_codes.md, "BloomFilter".
#ifndef DEEPREDUCE_LIB_INDEX_BLOOM_POLICY_H_
#define DEEPREDUCE_LIB_INDEX_BLOOM_POLICY_H_

#include <cstdint>

#include "deepreduce_tf/cc/lib/bits/error.h"
#include "deepreduce_tf/cc/lib/bits/span.h"
#include "deepreduce_tf/cc/lib/index/bloom_bits.h"

namespace deepreduce {

// In the order of their numbers in the code.
enum class BloomPolicy : uint8_t { kNaive, kP0, kP1, kP2, kLeftmost, kMiddle, kRightmost };
constexpr uint8_t kPolicies = 7;

// Writes indices.size of the accepted places, of which there are at least as many. `accepted` has a bit for each place of the segment.
Error ChoosePlaces(BloomPolicy policy, const BloomBits& filter, Span<const uint64_t> accepted, int64_t accepted_count,
                   Span<int32_t> indices);

}  // namespace deepreduce

#endif  // DEEPREDUCE_LIB_INDEX_BLOOM_POLICY_H_
