#include "deepreduce_tf/cc/lib/index/seeded_support.h"

#include "deepreduce_tf/cc/lib/bits/random.h"
#include "deepreduce_tf/cc/lib/bits/random_support.h"

namespace deepreduce {
namespace {

size_t Length(const Segment&, Span<const int32_t>) { return 0; }

size_t Encode(const Segment&, Span<const int32_t>, Span<uint8_t>) { return 0; }

Error Decode(const Segment& segment, Span<const uint8_t> code, Span<int32_t> indices) {
  if (!code.empty()) return {"a seeded support has no bytes", 0};
  if (!RandomSupport(StreamKey(segment.seed, segment.step, segment.number), segment.size, indices))
    return {"seeded support: out of memory", 0};
  return {};
}

}  // namespace

const IndexCodec kSeededSupport = {Encode, Decode, Length};

}  // namespace deepreduce
