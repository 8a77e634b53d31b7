// Index codecs as ops: one kernel class, one registration per codec of cc/lib.
#include "deepreduce_tf/cc/kernels/segment_loop.h"
#include "deepreduce_tf/cc/lib/index_codec.h"

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
    std::vector<Segment> segments;
    OP_REQUIRES_OK(context, ReadSegments(context, &segments));
    if (kShaped) OP_REQUIRES_OK(context, ReadDimensions(context, &segments));
    const Tensor *indices, *splits;
    OP_REQUIRES_OK(context, context->input("indices", &indices));
    OP_REQUIRES_OK(context, context->input("splits", &splits));
    OP_REQUIRES_OK(context, CheckVector("indices", *indices));
    OP_REQUIRES_OK(context, CheckSplits("splits", *splits, segments.size(), indices->NumElements()));
    const Span<const int64_t> ends = View<int64_t>(*splits);
    const int64_t n = static_cast<int64_t>(segments.size());

    std::vector<int64_t> starts(n + 1, 0);
    const std::vector<int64_t> counts = Lengths(ends);
    for (int64_t i = 0; i < n; ++i) {
      OP_REQUIRES_OK(context, CheckCounts(Span<const int64_t>(&counts[i], 1), Span<const int64_t>(&segments[i].size, 1)));
      starts[i + 1] = starts[i] + RawIndexLength(counts[i], segments[i].size) + kSlack;
    }
    Tensor room;
    OP_REQUIRES_OK(context, context->allocate_temp(tensorflow::DT_UINT8, {starts[n]}, &room));
    uint8_t* bytes = room.flat<uint8_t>().data();
    std::vector<int64_t> lengths(n);
    SharedStatus status;
    const IndexCodec& codec = *FindIndexCodec(kCodec);
    SegmentLoop loop(context, counts);
    loop.Run([&](int, int64_t i) {
      const Span<const int32_t> support = View<int32_t>(*indices).subspan(ends[i], counts[i]);
      const std::string wrong = WrongPlace(support, segments[i].size);
      if (!wrong.empty()) return status.Update(absl::InvalidArgumentError(absl::StrCat(wrong, " in segment ", i)));
      lengths[i] = EncodeIndices(codec, segments[i], support, bytes + starts[i]);
    });
    OP_REQUIRES_OK(context, status.Get());

    OP_REQUIRES_OK(context, OutputCodes(context, "code", "code_splits", lengths, [&](int64_t i) { return bytes + starts[i]; }));
  }
};

template <int kCodec>
class IndexDecodeOp : public tensorflow::OpKernel {
 public:
  using OpKernel::OpKernel;

  void Compute(OpKernelContext* context) override {
    std::vector<Segment> segments;
    OP_REQUIRES_OK(context, ReadSegments(context, &segments));
    const int64_t n = static_cast<int64_t>(segments.size());
    const Tensor *code, *code_splits, *counts_input;
    OP_REQUIRES_OK(context, context->input("code", &code));
    OP_REQUIRES_OK(context, context->input("code_splits", &code_splits));
    OP_REQUIRES_OK(context, context->input("counts", &counts_input));
    OP_REQUIRES_OK(context, CheckVector("code", *code));
    OP_REQUIRES_OK(context, CheckSplits("code_splits", *code_splits, n, code->NumElements()));
    OP_REQUIRES_OK(context, CheckVector("counts", *counts_input, n));
    const Span<const int64_t> counts = View<int64_t>(*counts_input), code_ends = View<int64_t>(*code_splits);
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
    SegmentLoop loop(context, std::vector<int64_t>(counts.begin(), counts.end()));
    loop.Run([&](int, int64_t i) {
      const Error error = DecodeIndices(codec, segments[i], View<uint8_t>(*code).subspan(code_ends[i], code_ends[i + 1] - code_ends[i]),
                                        Span<int32_t>(indices->flat<int32_t>().data() + ends(i), counts[i]));
      if (!error.ok()) {
        status.Update(absl::DataLossError(
            absl::StrCat("the index code of segment ", i, " is damaged: ", error.name, " at byte ", error.position, " of it")));
      }
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
DEEPREDUCE_REGISTER_INDEX_KERNELS("Adaptive", 9, true);

}  // namespace
}  // namespace deepreduce
