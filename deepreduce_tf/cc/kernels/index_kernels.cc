// Index codecs as ops: one kernel class for the encoders, one for the decoders, registered for each codec of the registry.
#include <algorithm>
#include <atomic>

#include "absl/strings/str_cat.h"
#include "deepreduce_tf/cc/kernels/code_tensors.h"
#include "deepreduce_tf/cc/kernels/segment_loop.h"
#include "deepreduce_tf/cc/kernels/segment_tensors.h"
#include "deepreduce_tf/cc/lib/bits/limits.h"
#include "deepreduce_tf/cc/lib/bits/raw_indices.h"
#include "deepreduce_tf/cc/lib/index/bloom_filter.h"
#include "deepreduce_tf/cc/lib/index/index_codecs.h"
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

// The inputs of an encoder: what it knows of each segment, and the indices of each.
struct Supports {
  std::vector<Segment> segments;
  std::vector<int64_t> counts;
  Span<const int32_t> indices;
  Span<const int64_t> splits;

  absl::Status Read(OpKernelContext* context) {
    const Tensor *indices_input, *splits_input;
    absl::Status status = ReadSegments(context, &segments);
    if (status.ok()) status = context->input("indices", &indices_input);
    if (status.ok()) status = context->input("splits", &splits_input);
    if (status.ok()) status = CheckVector("indices", *indices_input);
    if (status.ok()) status = CheckSplits("splits", *splits_input, segments.size(), indices_input->NumElements());
    if (!status.ok()) return status;
    indices = View<int32_t>(*indices_input);
    splits = View<int64_t>(*splits_input);
    counts = LengthsOf(splits);
    for (size_t i = 0; status.ok() && i < segments.size(); ++i) {
      status = CheckCounts(Span<const int64_t>(&counts[i], 1), Span<const int64_t>(&segments[i].size, 1));
    }
    return status;
  }

  Span<const int32_t> Of(int64_t segment) const { return indices.subspan(splits[segment], counts[segment]); }

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

template <const IndexCodec& kCodec, bool kOfShape>
class IndexEncodeOp : public tensorflow::OpKernel {
 public:
  using OpKernel::OpKernel;

  void Compute(OpKernelContext* context) override {
    Supports supports;
    OP_REQUIRES_OK(context, supports.Read(context));
    if (kOfShape) OP_REQUIRES_OK(context, ReadDimensions(context, &supports.segments));
    const std::vector<Segment>& segments = supports.segments;
    const int64_t n = static_cast<int64_t>(segments.size());
    std::vector<int64_t> starts(n + 1, 0);
    for (int64_t i = 0; i < n; ++i) starts[i + 1] = starts[i] + RawIndexLength(supports.counts[i], segments[i].size) + kSlack;
    Tensor buffer;
    OP_REQUIRES_OK(context, context->allocate_temp(tensorflow::DT_UINT8, {starts[n]}, &buffer));
    uint8_t* bytes = buffer.flat<uint8_t>().data();
    std::vector<int64_t> lengths(n);
    SharedStatus status;
    SegmentLoop loop(context, supports.counts);
    loop.Run([&](int, int64_t i) {
      const absl::Status checked = supports.Check(i);
      if (!checked.ok()) return status.Update(checked);
      lengths[i] = EncodeIndices(kCodec, segments[i], supports.Of(i), bytes + starts[i]);
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
    options_.false_positive_rate = rate;
    const auto named = std::find(std::begin(kBloomPolicyNames), std::end(kBloomPolicyNames), policy);
    options_.policy = static_cast<BloomPolicy>(named - std::begin(kBloomPolicyNames));
  }

  void Compute(OpKernelContext* context) override {
    Supports supports;
    OP_REQUIRES_OK(context, supports.Read(context));
    const int64_t n = static_cast<int64_t>(supports.segments.size());
    std::vector<std::vector<uint8_t>> codes(n);
    std::vector<std::vector<int32_t>> chosen(n);
    std::vector<int64_t> lengths(n), counts(n), weights(n);
    for (int64_t i = 0; i < n; ++i) weights[i] = supports.segments[i].size / 16;
    SharedStatus status;
    SegmentLoop loop(context, weights);
    loop.Run([&](int, int64_t i) {
      const absl::Status checked = supports.Check(i);
      if (!checked.ok()) return status.Update(checked);
      const Error error = EncodeBloomFilter(supports.segments[i], supports.Of(i), options_, &codes[i], &chosen[i]);
      if (!error.ok())
        return status.Update(absl::ResourceExhaustedError(
            absl::StrCat(error.name, " in segment ", i, ". Use another `policy`: p0 and the windows need the smallest buffers")));
      lengths[i] = static_cast<int64_t>(codes[i].size());
      counts[i] = static_cast<int64_t>(chosen[i].size());
      WarnIfLarge(lengths[i] + 4 * counts[i], 8 * supports.counts[i]);
    });
    OP_REQUIRES_OK(context, status.Get());

    OP_REQUIRES_OK(context, OutputCodes(context, "code", "code_splits", lengths, [&](int64_t i) { return codes[i].data(); }));
    Span<const int64_t> splits;
    OP_REQUIRES_OK(context, OutputSplits(context, "support_splits", counts, &splits));
    Tensor* support;
    OP_REQUIRES_OK(context, context->allocate_output("support", {splits[n]}, &support));
    for (int64_t i = 0; i < n; ++i) std::copy(chosen[i].begin(), chosen[i].end(), support->flat<int32_t>().data() + splits[i]);
  }

 private:
  void WarnIfLarge(int64_t bytes, int64_t pairs) {
    if (bytes <= pairs || warned_.exchange(true)) return;
    LOG(WARNING) << "BloomFilter: the code of a segment and float32 values at its indices take " << bytes
                 << " bytes, more than the raw (index, value) pairs that it was given: " << pairs
                 << " bytes. Rice is exact and smaller. Further segments are not reported.";
  }

  BloomOptions options_;
  std::atomic<bool> warned_{false};
};

template <const IndexCodec& kCodec>
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
    for (int64_t i = 0; i < n; ++i) {
      OP_REQUIRES_OK(context, CheckCounts(Span<const int64_t>(&counts[i], 1), Span<const int64_t>(&segments[i].size, 1)));
    }
    std::vector<int64_t> weights(counts.begin(), counts.end());
    Span<const int64_t> splits;
    OP_REQUIRES_OK(context, OutputSplits(context, "splits", weights, &splits));
    Tensor* indices;
    OP_REQUIRES_OK(context, context->allocate_output("indices", {splits[n]}, &indices));
    SharedStatus status;
    // A filter is asked about all elements.
    for (int64_t i = 0; kCodec.length == nullptr && i < n; ++i) weights[i] += segments[i].size / 16;
    SegmentLoop loop(context, weights);
    loop.Run([&](int, int64_t i) {
      const Span<int32_t> decoded(indices->flat<int32_t>().data() + splits[i], counts[i]);
      status.Update(DamagedCode("index", i, DecodeIndices(kCodec, segments[i], codes.Of(i), decoded)));
    });
    OP_REQUIRES_OK(context, status.Get());
  }
};

#define DEEPREDUCE_INDEX_ENCODER(name, of_shape) \
  REGISTER_KERNEL_BUILDER(Name("DeepReduce>" #name "Encode").Device(tensorflow::DEVICE_CPU), IndexEncodeOp<k##name, of_shape>);
#define DEEPREDUCE_INDEX_DECODER(name) \
  REGISTER_KERNEL_BUILDER(Name("DeepReduce>" #name "Decode").Device(tensorflow::DEVICE_CPU), IndexDecodeOp<k##name>);

#define DEEPREDUCE_INDEX_CODEC(id, name) DEEPREDUCE_INDEX_ENCODER(name, false) DEEPREDUCE_INDEX_DECODER(name)
#define DEEPREDUCE_INDEX_CODEC_OF_SHAPE(id, name) DEEPREDUCE_INDEX_ENCODER(name, true) DEEPREDUCE_INDEX_DECODER(name)
#define DEEPREDUCE_INDEX_CODEC_WITH_OWN_ENCODER(id, name) DEEPREDUCE_INDEX_DECODER(name)
#include "deepreduce_tf/cc/lib/index/index_codecs.def"

REGISTER_KERNEL_BUILDER(Name("DeepReduce>BloomFilterEncode").Device(tensorflow::DEVICE_CPU), BloomFilterEncodeOp);

}  // namespace
}  // namespace deepreduce
