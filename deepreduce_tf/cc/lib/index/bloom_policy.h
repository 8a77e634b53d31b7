// Which of the places that a Bloom filter accepts are the support: docs/format/index_codes.md, "BloomFilter".
#ifndef DEEPREDUCE_LIB_INDEX_BLOOM_POLICY_H_
#define DEEPREDUCE_LIB_INDEX_BLOOM_POLICY_H_

#include <cstddef>
#include <cstdint>
#include <iterator>

#include "deepreduce_tf/cc/lib/bits/error.h"
#include "deepreduce_tf/cc/lib/bits/span.h"
#include "deepreduce_tf/cc/lib/index/bloom_bits.h"

namespace deepreduce {

enum class BloomPolicy : uint8_t {
#define DEEPREDUCE_BLOOM_POLICY(policy, name) policy,
#include "deepreduce_tf/cc/lib/index/bloom_policies.def"
};

// The names of the option `policy`; policy number i has the i-th.
constexpr const char* kBloomPolicyNames[] = {
#define DEEPREDUCE_BLOOM_POLICY(policy, name) name,
#include "deepreduce_tf/cc/lib/index/bloom_policies.def"
};
constexpr size_t kBloomPolicies = std::size(kBloomPolicyNames);

// Writes indices.size of the accepted places, of which there are at least as many. `accepted` has a bit for each place of the segment.
Error ChoosePlaces(BloomPolicy policy, const BloomBits& filter, Span<const uint64_t> accepted, int64_t accepted_count,
                   Span<int32_t> indices);

}  // namespace deepreduce

#endif  // DEEPREDUCE_LIB_INDEX_BLOOM_POLICY_H_
