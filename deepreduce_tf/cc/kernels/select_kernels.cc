// Sparsifiers: finite check, error feedback and selection in one op per bucket.
#include <cmath>
#include <cstring>

#include "deepreduce_tf/cc/kernels/residual.h"
#include "deepreduce_tf/cc/kernels/segment_loop.h"
#include "deepreduce_tf/cc/kernels/segment_tensors.h"
#include "deepreduce_tf/cc/lib/bits/all_finite.h"
#include "deepreduce_tf/cc/lib/bits/limits.h"
#include "deepreduce_tf/cc/lib/bits/random.h"
#include "deepreduce_tf/cc/lib/bits/random_support.h"
#include "deepreduce_tf/cc/lib/select/select.h"

namespace deepreduce {
namespace {

using tensorflow::OpKernelContext;
using tensorflow::Tensor;

// How many elements a ratio keeps: at least one of a segment that has any.
int64_t KeptCount(int64_t size, double ratio) {
  if (size == 0) return 0;
  return std::min<int64_t>(size, std::max<int64_t>(1, std::llround(ratio * static_cast<double>(size))));
}

absl::Status ReadRatio(OpKernelContext* context, double* ratio) {
  const Tensor* tensor;
  absl::Status status = context->input("ratio", &tensor);
  if (status.ok()) status = CheckScalar("ratio", *tensor);
  if (!status.ok()) return status;
  *ratio = tensor->scalar<double>()();
  if (*ratio > 0 && *ratio <= 1) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("`ratio` must be in (0, 1]. Received: ratio=", *ratio));
}

// What all sparsifiers share: the inputs, and the rule for gradients that are not finite. Such a gradient is selected from as it is; its
// residual stays as it was.
class SelectOp : public tensorflow::OpKernel {
 public:
  using OpKernel::OpKernel;

  void Compute(OpKernelContext* context) final {
    tensorflow::OpInputList gradients;
    OP_REQUIRES_OK(context, context->input_list("gradients", &gradients));
    std::vector<int64_t> sizes(gradients.size());
    for (int i = 0; i < gradients.size(); ++i) {
      sizes[i] = gradients[i].NumElements();
      OP_REQUIRES(context, sizes[i] <= kMaxSize,
                  absl::InvalidArgumentError(absl::StrCat("a gradient must have at most ", kMaxSize, " elements. Received: ", sizes[i],
                                                          " in gradient ", i, ". Split the variable")));
    }
    Residuals residuals;
    OP_REQUIRES_OK(context, residuals.Find(context, gradients.size(), sizes));
    Select(context, gradients, sizes, &residuals);
  }

 protected:
  virtual void Select(OpKernelContext* context, const tensorflow::OpInputList& gradients, const std::vector<int64_t>& sizes,
                      Residuals* residuals) = 0;

  // Runs body(residual or null, gradient, whether the gradient is finite) under that rule.
  template <class Body>
  static absl::Status WithAcc(OpKernelContext* context, const Tensor& gradient, int64_t segment, Residuals* residuals, Body body) {
    const Span<const float> view = View<float>(gradient);
    if (!AllFinite(view)) {
      body(static_cast<float*>(nullptr), view, false);
      return absl::OkStatus();
    }
    return residuals->With(context, segment, [&](float* residual) { body(residual, view, true); });
  }

  // Outputs for a known number of kept elements per segment.
  static absl::Status Allocate(OpKernelContext* context, const std::vector<int64_t>& counts, Tensor** indices, Tensor** values,
                               Span<const int64_t>* splits) {
    absl::Status status = OutputSplits(context, "splits", counts, splits);
    if (!status.ok()) return status;
    const int64_t total = (*splits)[counts.size()];
    status = context->allocate_output("indices", {total}, indices);
    if (status.ok()) status = context->allocate_output("values", {total}, values);
    return status;
  }
};

class TopKSelectOp : public SelectOp {
 public:
  using SelectOp::SelectOp;

 private:
  void Select(OpKernelContext* context, const tensorflow::OpInputList& gradients, const std::vector<int64_t>& sizes,
              Residuals* residuals) override {
    double ratio;
    OP_REQUIRES_OK(context, ReadRatio(context, &ratio));
    std::vector<int64_t> counts(sizes.size());
    std::transform(sizes.begin(), sizes.end(), counts.begin(), [&](int64_t size) { return KeptCount(size, ratio); });
    Tensor *indices, *values;
    Span<const int64_t> splits;
    OP_REQUIRES_OK(context, Allocate(context, counts, &indices, &values, &splits));
    SegmentLoop loop(context, sizes);
    std::vector<SelectScratch> scratch(loop.workers());
    SharedStatus status;
    loop.Run([&](int worker, int64_t i) {
      const int64_t start = splits[i];
      status.Update(WithAcc(context, gradients[i], i, residuals, [&](float* residual, Span<const float> gradient, bool) {
        SelectTopK(residual, gradient, counts[i], &scratch[worker], indices->flat<int32_t>().data() + start,
                   values->flat<float>().data() + start);
      }));
    });
    OP_REQUIRES_OK(context, status.Get());
  }
};

class ThresholdSelectOp : public SelectOp {
 public:
  using SelectOp::SelectOp;

 private:
  void Select(OpKernelContext* context, const tensorflow::OpInputList& gradients, const std::vector<int64_t>& sizes,
              Residuals* residuals) override {
    const Tensor* threshold;
    OP_REQUIRES_OK(context, context->input("threshold", &threshold));
    OP_REQUIRES_OK(context, CheckScalar("threshold", *threshold));
    const float lowest = threshold->scalar<float>()();
    // By its bits: where denormal numbers are flushed to zero, a comparison would call the smallest ones zero.
    int32_t bits;
    std::memcpy(&bits, &lowest, sizeof bits);
    OP_REQUIRES(context, bits > 0 && std::isfinite(lowest),
                absl::InvalidArgumentError(absl::StrCat("`threshold` must be positive and finite. Received: threshold=", lowest)));
    // How much a segment keeps is known only afterwards.
    std::vector<SelectScratch> kept(sizes.size());
    std::vector<int64_t> counts(sizes.size());
    SegmentLoop loop(context, sizes);
    SharedStatus status;
    loop.Run([&](int, int64_t i) {
      status.Update(WithAcc(context, gradients[i], i, residuals, [&](float* residual, Span<const float> gradient, bool) {
        counts[i] = static_cast<int64_t>(SelectThreshold(residual, gradient, lowest, &kept[i]));
      }));
    });
    OP_REQUIRES_OK(context, status.Get());
    Tensor *indices, *values;
    Span<const int64_t> splits;
    OP_REQUIRES_OK(context, Allocate(context, counts, &indices, &values, &splits));
    for (size_t i = 0; i < sizes.size(); ++i) {
      const int64_t start = splits[i];
      std::copy_n(kept[i].indices.get(), counts[i], indices->flat<int32_t>().data() + start);
      std::copy_n(kept[i].values.get(), counts[i], values->flat<float>().data() + start);
    }
  }
};

class RandomKSelectOp : public SelectOp {
 public:
  using SelectOp::SelectOp;

 private:
  void Select(OpKernelContext* context, const tensorflow::OpInputList& gradients, const std::vector<int64_t>& sizes,
              Residuals* residuals) override {
    double ratio;
    OP_REQUIRES_OK(context, ReadRatio(context, &ratio));
    const Tensor *seed, *step;
    OP_REQUIRES_OK(context, context->input("seed", &seed));
    OP_REQUIRES_OK(context, context->input("step", &step));
    OP_REQUIRES_OK(context, CheckScalar("seed", *seed));
    OP_REQUIRES_OK(context, CheckScalar("step", *step));
    const uint32_t seed_value = static_cast<uint32_t>(seed->scalar<int64_t>()());
    const uint64_t step_value = static_cast<uint64_t>(step->scalar<int64_t>()());
    std::vector<int64_t> counts(sizes.size());
    std::transform(sizes.begin(), sizes.end(), counts.begin(), [&](int64_t size) { return KeptCount(size, ratio); });
    Tensor *indices, *values;
    Span<const int64_t> splits;
    OP_REQUIRES_OK(context, Allocate(context, counts, &indices, &values, &splits));
    SegmentLoop loop(context, sizes);
    SharedStatus status;
    loop.Run([&](int, int64_t i) {
      const int64_t start = splits[i];
      const Span<int32_t> support(indices->flat<int32_t>().data() + start, counts[i]);
      float* kept = values->flat<float>().data() + start;
      if (!RandomSupport(StreamKey(seed_value, step_value, i), sizes[i], support)) {
        return status.Update(absl::ResourceExhaustedError(absl::StrCat("out of memory for the support of segment ", i)));
      }
      status.Update(WithAcc(context, gradients[i], i, residuals, [&](float* residual, Span<const float> gradient, bool finite) {
        SelectSupport(residual, gradient, support, kept);
        // The support was drawn without a look at the gradient; what is not finite must reach the other ranks all the same.
        if (!finite && AllFinite(Span<const float>(kept, counts[i]))) {
          kept[0] = *std::find_if(gradient.begin(), gradient.end(), [](float x) { return !std::isfinite(x); });
        }
      }));
    });
    OP_REQUIRES_OK(context, status.Get());
  }
};

// residual -= what was sent, on the support. A segment that sent non-finite values keeps its residual.
class ResidualCommitOp : public tensorflow::OpKernel {
 public:
  using OpKernel::OpKernel;

  void Compute(OpKernelContext* context) override {
    tensorflow::OpInputList handles;
    OP_REQUIRES_OK(context, context->input_list("residuals", &handles));
    const Tensor *indices, *sent, *splits_input, *sizes_input;
    OP_REQUIRES_OK(context, context->input("indices", &indices));
    OP_REQUIRES_OK(context, context->input("sent", &sent));
    OP_REQUIRES_OK(context, context->input("splits", &splits_input));
    OP_REQUIRES_OK(context, context->input("sizes", &sizes_input));
    OP_REQUIRES_OK(context, CheckVector("indices", *indices));
    OP_REQUIRES_OK(context, CheckVector("sent", *sent, indices->NumElements()));
    OP_REQUIRES_OK(context, CheckSplits("splits", *splits_input, handles.size(), indices->NumElements()));
    OP_REQUIRES_OK(context, CheckVector("sizes", *sizes_input, handles.size()));
    const Span<const int64_t> sizes = View<int64_t>(*sizes_input);
    Residuals residuals;
    OP_REQUIRES_OK(context, residuals.Find(context, 0, std::vector<int64_t>(sizes.begin(), sizes.end())));
    const Span<const int64_t> splits = View<int64_t>(*splits_input);
    SegmentLoop loop(context, LengthsOf(splits));
    SharedStatus status;
    loop.Run([&](int, int64_t i) {
      const Span<const int32_t> support = View<int32_t>(*indices).subspan(splits[i], splits[i + 1] - splits[i]);
      const Span<const float> values = View<float>(*sent).subspan(splits[i], splits[i + 1] - splits[i]);
      if (!AllFinite(values)) return;
      const std::string wrong = WrongIndex(support, sizes[i]);
      if (!wrong.empty()) return status.Update(absl::InvalidArgumentError(absl::StrCat(wrong, " in segment ", i)));
      status.Update(residuals.With(context, i, [&](float* residual) {
        constexpr size_t kAhead = 24;  // the elements are far apart: ask memory for them early
        for (size_t j = 0; j < support.size; ++j) {
          if (j + kAhead < support.size) __builtin_prefetch(residual + support[j + kAhead], 1);
          residual[support[j]] -= values[j];
        }
      }));
    });
    OP_REQUIRES_OK(context, status.Get());
  }
};

REGISTER_KERNEL_BUILDER(Name("DeepReduce>TopKSelect").Device(tensorflow::DEVICE_CPU), TopKSelectOp);
REGISTER_KERNEL_BUILDER(Name("DeepReduce>ThresholdSelect").Device(tensorflow::DEVICE_CPU), ThresholdSelectOp);
REGISTER_KERNEL_BUILDER(Name("DeepReduce>RandomKSelect").Device(tensorflow::DEVICE_CPU), RandomKSelectOp);
REGISTER_KERNEL_BUILDER(Name("DeepReduce>ResidualCommit").Device(tensorflow::DEVICE_CPU), ResidualCommitOp);

}  // namespace
}  // namespace deepreduce
