// Index codecs as ops: one kernel class, one registration per codec of cc/lib.
#include <algorithm>
#include <atomic>

#include "deepreduce_tf/cc/kernels/segment_loop.h"
#include "deepreduce_tf/cc/lib/bits/limits.h"
#include "deepreduce_tf/cc/lib/bits/raw_indices.h"
#include "deepreduce_tf/cc/lib/index/bloom_filter.h"
#include "deepreduce_tf/cc/lib/index/index_codec.h"
#include "tensorflow/core/platform/logging.h"

namespace deepreduce {
namespace {

using tensorflow::OpKernelContext;
using tensorflow::Tensor;

// The inputs `sizes`, `seed` and `step`: what a codec knows of each segment.
absl::Status ReadSegments(OpKernelContext* context, std::vector<Segment>* segments) {
  const Tensor *sizes, *seed, *step;
  absl::Status status = context->input("sizes", &sizes);
  if (status.ok()) status = context->input("seed", &seed);
  if (status.ok()) status = context->input("step", &step);
  if (status.ok()) status = CheckVector("sizes", *sizes);
  if (status.ok()) status = CheckScalar("seed", *seed);
  if (status.ok()) status = CheckScalar("step", *step);
  if (!status.ok()) return status;
  segments->resize(sizes->NumElements());
  for (size_t i = 0; i < segments->size(); ++i) {
    (*segments)[i] = {View<int64_t>(*sizes)[i], static_cast<uint32_t>(seed->scalar<int64_t>()()),
                      static_cast<uint64_t>(step->scalar<int64_t>()()), static_cast<uint32_t>(i)};
  }
  return absl::OkStatus();
}

// The inputs of an encoder: what it knows of each segment, and the places of each.
struct Supports {
  std::vector<Segment> segments;
  std::vector<int64_t> counts;
  Span<const int32_t> indices;
  Span<const int64_t> ends;

  absl::Status Read(OpKernelContext* context) {
    const Tensor *indices_input, *splits;
    absl::Status status = ReadSegments(context, &segments);
    if (status.ok()) status = context->input("indices", &indices_input);
    if (status.ok()) status = context->input("splits", &splits);
    if (status.ok()) status = CheckVector("indices", *indices_input);
    if (status.ok()) status = CheckSplits("splits", *splits, segments.size(), indices_input->NumElements());
    if (!status.ok()) return status;
    indices = View<int32_t>(*indices_input);
    ends = View<int64_t>(*splits);
    counts = Lengths(ends);
    for (size_t i = 0; status.ok() && i < segments.size(); ++i) {
      status = CheckCounts(Span<const int64_t>(&counts[i], 1), Span<const int64_t>(&segments[i].size, 1));
    }
    return status;
  }

  Span<const int32_t> Of(int64_t segment) const { return indices.subspan(ends[segment], counts[segment]); }

  absl::Status Check(int64_t segment) const {
    const std::string wrong = WrongIndex(Of(segment), segments[segment].size);
    return wrong.empty() ? absl::OkStatus() : absl::InvalidArgumentError(absl::StrCat(wrong, " in segment ", segment));
  }
};

// The input `dimensions` of codecs that look at the shape: rows and columns of each segment.
absl::Status ReadDimensions(OpKernelContext* context, std::vector<Segment>* segments) {
  const Tensor* dimensions;
  absl::Status status = context->input("dimensions", &dimensions);
  if (!status.ok()) return status;
  if (dimensions->dims() != 2 || dimensions->dim_size(0) != static_cast<int64_t>(segments->size()) || dimensions->dim_size(1) != 2) {
    return absl::InvalidArgumentError(absl::StrCat("`dimensions` must be rows and columns of each of ", segments->size(),
                                                   " segments. Received: shape=", dimensions->shape().DebugString()));
  }
  for (size_t i = 0; i < segments->size(); ++i) {
    (*segments)[i].rows = View<int64_t>(*dimensions)[2 * i];
    (*segments)[i].columns = View<int64_t>(*dimensions)[2 * i + 1];
  }
  return absl::OkStatus();
}

template <int kCodec, bool kShaped>
class IndexEncodeOp : public tensorflow::OpKernel {
 public:
  using OpKernel::OpKernel;

  void Compute(OpKernelContext* context) override {
    Supports supports;
    OP_REQUIRES_OK(context, supports.Read(context));
    if (kShaped) OP_REQUIRES_OK(context, ReadDimensions(context, &supports.segments));
    const std::vector<Segment>& segments = supports.segments;
    const int64_t n = static_cast<int64_t>(segments.size());
    std::vector<int64_t> starts(n + 1, 0);
    for (int64_t i = 0; i < n; ++i) starts[i + 1] = starts[i] + RawIndexLength(supports.counts[i], segments[i].size) + kSlack;
    Tensor room;
    OP_REQUIRES_OK(context, context->allocate_temp(tensorflow::DT_UINT8, {starts[n]}, &room));
    uint8_t* bytes = room.flat<uint8_t>().data();
    std::vector<int64_t> lengths(n);
    SharedStatus status;
    const IndexCodec& codec = *FindIndexCodec(kCodec);
    SegmentLoop loop(context, supports.counts);
    loop.Run([&](int, int64_t i) {
      const absl::Status checked = supports.Check(i);
      if (!checked.ok()) return status.Update(checked);
      lengths[i] = EncodeIndices(codec, segments[i], supports.Of(i), bytes + starts[i]);
    });
    OP_REQUIRES_OK(context, status.Get());

    OP_REQUIRES_OK(context, OutputCodes(context, "code", "code_splits", lengths, [&](int64_t i) { return bytes + starts[i]; }));
  }
};

class BloomFilterEncodeOp : public tensorflow::OpKernel {
 public:
  explicit BloomFilterEncodeOp(tensorflow::OpKernelConstruction* context) : OpKernel(context) {
    float rate;
    std::string policy;
    OP_REQUIRES_OK(context, context->GetAttr("fpr", &rate));
    OP_REQUIRES_OK(context, context->GetAttr("policy", &policy));
    OP_REQUIRES(context, rate >= 1e-9f && rate <= 0.999f,
                absl::InvalidArgumentError(absl::StrCat("`fpr` must be in [1e-9, 0.999]. Received: fpr=", rate)));
    constexpr const char* kNames[kPolicies] = {"naive", "p0", "p1", "p2", "leftmost", "middle", "rightmost"};
    options_.false_positive_rate = rate;
    options_.policy = static_cast<BloomPolicy>(std::find(kNames, kNames + kPolicies, policy) - kNames);
  }

  void Compute(OpKernelContext* context) override {
    Supports supports;
    OP_REQUIRES_OK(context, supports.Read(context));
    const int64_t n = static_cast<int64_t>(supports.segments.size());
    std::vector<std::vector<uint8_t>> codes(n);
    std::vector<std::vector<int32_t>> places(n);
    std::vector<int64_t> lengths(n), weights(n);
    for (int64_t i = 0; i < n; ++i) weights[i] = supports.segments[i].size / 16;
    SharedStatus status;
    SegmentLoop loop(context, weights);
    loop.Run([&](int, int64_t i) {
      const absl::Status checked = supports.Check(i);
      if (!checked.ok()) return status.Update(checked);
      const Error error = EncodeBloomFilter(supports.segments[i], supports.Of(i), options_, &codes[i], &places[i]);
      if (!error.ok())
        return status.Update(absl::ResourceExhaustedError(
            absl::StrCat(error.name, " in segment ", i, ". Use another `policy`: p0 and the windows need least memory")));
      lengths[i] = static_cast<int64_t>(codes[i].size());
      WarnIfLarge(lengths[i] + 4 * static_cast<int64_t>(places[i].size()), 8 * supports.counts[i]);
    });
    OP_REQUIRES_OK(context, status.Get());

    OP_REQUIRES_OK(context, OutputCodes(context, "code", "code_splits", lengths, [&](int64_t i) { return codes[i].data(); }));
    Tensor *splits, *indices;
    OP_REQUIRES_OK(context, context->allocate_output("support_splits", {n + 1}, &splits));
    auto ends = splits->vec<int64_t>();
    ends(0) = 0;
    for (int64_t i = 0; i < n; ++i) ends(i + 1) = ends(i) + static_cast<int64_t>(places[i].size());
    OP_REQUIRES_OK(context, context->allocate_output("support", {ends(n)}, &indices));
    for (int64_t i = 0; i < n; ++i) std::copy(places[i].begin(), places[i].end(), indices->flat<int32_t>().data() + ends(i));
  }

 private:
  // Its size is what a user asked to study, but nobody should pay it unaware.
  void WarnIfLarge(int64_t bytes, int64_t pairs) {
    if (bytes <= pairs || warned_.exchange(true)) return;
    LOG(WARNING) << "BloomFilter: the code of a segment and float32 values at its places take " << bytes
                 << " bytes, more than the raw (index, value) pairs that it was given: " << pairs
                 << " bytes. Rice is exact and smaller. This is said once.";
  }

  BloomOptions options_;
  std::atomic<bool> warned_{false};
};

template <int kCodec>
class IndexDecodeOp : public tensorflow::OpKernel {
 public:
  using OpKernel::OpKernel;

  void Compute(OpKernelContext* context) override {
    std::vector<Segment> segments;
    OP_REQUIRES_OK(context, ReadSegments(context, &segments));
    const int64_t n = static_cast<int64_t>(segments.size());
    Codes codes;
    OP_REQUIRES_OK(context, codes.Read(context, n));
    const Span<const int64_t> counts = codes.counts;
    Tensor *splits, *indices;
    OP_REQUIRES_OK(context, context->allocate_output("splits", {n + 1}, &splits));
    auto ends = splits->vec<int64_t>();
    ends(0) = 0;
    for (int64_t i = 0; i < n; ++i) {
      OP_REQUIRES_OK(context, CheckCounts(Span<const int64_t>(&counts[i], 1), Span<const int64_t>(&segments[i].size, 1)));
      ends(i + 1) = ends(i) + counts[i];
    }
    OP_REQUIRES_OK(context, context->allocate_output("indices", {ends(n)}, &indices));
    SharedStatus status;
    const IndexCodec& codec = *FindIndexCodec(kCodec);
    std::vector<int64_t> weights(counts.begin(), counts.end());
    for (int64_t i = 0; codec.length == nullptr && i < n; ++i) weights[i] += segments[i].size / 16;  // a filter is asked about all places
    SegmentLoop loop(context, weights);
    loop.Run([&](int, int64_t i) {
      const Span<int32_t> places(indices->flat<int32_t>().data() + ends(i), counts[i]);
      status.Update(DamagedCode("index", i, DecodeIndices(codec, segments[i], codes.Of(i), places)));
    });
    OP_REQUIRES_OK(context, status.Get());
  }
};

#define DEEPREDUCE_REGISTER_INDEX_KERNELS(name, id, shaped)                                                             \
  REGISTER_KERNEL_BUILDER(Name("DeepReduce>" name "Encode").Device(tensorflow::DEVICE_CPU), IndexEncodeOp<id, shaped>); \
  REGISTER_KERNEL_BUILDER(Name("DeepReduce>" name "Decode").Device(tensorflow::DEVICE_CPU), IndexDecodeOp<id>)
#define DEEPREDUCE_REGISTER_INDEX_CODEC(name, id) DEEPREDUCE_REGISTER_INDEX_KERNELS(name, id, false)

DEEPREDUCE_REGISTER_INDEX_CODEC("SeededSupport", 0);
DEEPREDUCE_REGISTER_INDEX_CODEC("FixedWidth", 1);
DEEPREDUCE_REGISTER_INDEX_CODEC("Bitmap", 2);
DEEPREDUCE_REGISTER_INDEX_CODEC("Rice", 3);
DEEPREDUCE_REGISTER_INDEX_CODEC("EliasFano", 4);
DEEPREDUCE_REGISTER_INDEX_CODEC("RunLength", 5);
DEEPREDUCE_REGISTER_INDEX_CODEC("Huffman", 6);
DEEPREDUCE_REGISTER_INDEX_CODEC("DeltaHuffman", 7);
DEEPREDUCE_REGISTER_INDEX_KERNELS("Adaptive", 9, true);

REGISTER_KERNEL_BUILDER(Name("DeepReduce>BloomFilterEncode").Device(tensorflow::DEVICE_CPU), BloomFilterEncodeOp);
REGISTER_KERNEL_BUILDER(Name("DeepReduce>BloomFilterDecode").Device(tensorflow::DEVICE_CPU), IndexDecodeOp<8>);

}  // namespace
}  // namespace deepreduce
