// A Bloom filter of the kept places (Bloom, "Space/time trade-offs in hash coding with allowable errors", 1970), and policies that make a
// support of what it accepts (Xu et al., "DeepReduce", 2021). Not lossless.
#ifndef DEEPREDUCE_LIB_INDEX_BLOOM_FILTER_H_
#define DEEPREDUCE_LIB_INDEX_BLOOM_FILTER_H_

#include <cstdint>
#include <vector>

#include "deepreduce_tf/cc/lib/bits/buffer.h"
#include "deepreduce_tf/cc/lib/index/bloom_policy.h"
#include "deepreduce_tf/cc/lib/index/index_codec.h"

namespace deepreduce {

// Decodes only: its encoder has options, and another support than it is given.
extern const IndexCodec kBloomFilter;

struct BloomOptions {
  double false_positive_rate = 0.001;
  BloomPolicy policy = BloomPolicy::kP2;
};

// The code of a support, and the support that decode gives. Fails where the filter accepts more places than P2 can work on, or memory for
// what it works on ends.
Error EncodeBloomFilter(const Segment& segment, Span<const int32_t> indices, const BloomOptions& options, std::vector<uint8_t>* code,
                        std::vector<int32_t>* support);

// One reading of a code. Encoders read their own, so that both sides have one support.
class BloomReader {
 public:
  // Asks the filter about every place of the segment. `count`: of the frame, or a lower one.
  Error Open(const Segment& segment, Span<const uint8_t> code, int64_t count);
  // How many places the filter accepts.
  int64_t accepted() const { return accepted_count_; }
  // The support; indices.size is the frame's count.
  Error Choose(Span<int32_t> indices) const;

 private:
  void Query();

  BloomPolicy policy_;
  BloomBits filter_;
  size_t blocks_ = 0;
  Buffer<uint64_t> accepted_;  // a bit for each place
  int64_t accepted_count_ = 0;
};

}  // namespace deepreduce

#endif  // DEEPREDUCE_LIB_INDEX_BLOOM_FILTER_H_
