#include "deepreduce_tf/cc/lib/index/fixed_width.h"

#include "deepreduce_tf/cc/lib/bits/raw_indices.h"

namespace deepreduce {
namespace {

size_t Length(const Segment& segment, Span<const int32_t> indices) {
  return RawIndexLength(static_cast<int64_t>(indices.size), segment.size);
}

size_t Encode(const Segment&, Span<const int32_t>, Span<uint8_t>) { return kNotShorter; }

Error Decode(const Segment&, Span<const uint8_t>, Span<int32_t>) { return {"FixedWidth has no coded form", 0}; }

}  // namespace

const IndexCodec kFixedWidth = {Encode, Decode, Length};

}  // namespace deepreduce
