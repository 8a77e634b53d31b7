// The values at a support that an index codec changed after selection.
#include <algorithm>
#include <cmath>

#include "deepreduce_tf/cc/kernels/residual.h"
#include "deepreduce_tf/cc/kernels/segment_loop.h"
#include "deepreduce_tf/cc/kernels/segment_tensors.h"
#include "deepreduce_tf/cc/lib/bits/all_finite.h"

namespace deepreduce {
namespace {

using tensorflow::OpKernelContext;
using tensorflow::Tensor;

class SupportValuesOp : public tensorflow::OpKernel {
 public:
  using OpKernel::OpKernel;

  void Compute(OpKernelContext* context) override {
    tensorflow::OpInputList gradients;
    OP_REQUIRES_OK(context, context->input_list("gradients", &gradients));
    const Tensor *indices, *splits_input;
    OP_REQUIRES_OK(context, context->input("indices", &indices));
    OP_REQUIRES_OK(context, context->input("splits", &splits_input));
    OP_REQUIRES_OK(context, CheckVector("indices", *indices));
    OP_REQUIRES_OK(context, CheckSplits("splits", *splits_input, gradients.size(), indices->NumElements()));
    std::vector<int64_t> sizes(gradients.size());
    for (int i = 0; i < gradients.size(); ++i) sizes[i] = gradients[i].NumElements();
    Residuals residuals;
    OP_REQUIRES_OK(context, residuals.Find(context, gradients.size(), sizes));
    Tensor* values;
    OP_REQUIRES_OK(context, context->allocate_output("values", {indices->NumElements()}, &values));
    const Span<const int64_t> splits = View<int64_t>(*splits_input);
    SegmentLoop loop(context, sizes);
    SharedStatus status;
    loop.Run([&](int, int64_t i) {
      const size_t count = splits[i + 1] - splits[i];
      const Span<const int32_t> support = View<int32_t>(*indices).subspan(splits[i], count);
      const std::string wrong = WrongIndex(support, sizes[i]);
      if (!wrong.empty()) return status.Update(absl::InvalidArgumentError(absl::StrCat(wrong, " in segment ", i)));
      const Span<const float> gradient = View<float>(gradients[i]);
      float* const out = values->flat<float>().data() + splits[i];
      if (!AllFinite(gradient)) {
        // The support is no longer what selection chose, so the first non-finite value stands for all.
        std::fill_n(out, count, *std::find_if(gradient.begin(), gradient.end(), [](float x) { return !std::isfinite(x); }));
        return;
      }
      status.Update(residuals.With(context, i, [&](const float* residual) {
        const float* const acc = residual != nullptr ? residual : gradient.data;
        for (size_t j = 0; j < count; ++j) out[j] = acc[support[j]];
      }));
    });
    OP_REQUIRES_OK(context, status.Get());
  }
};

REGISTER_KERNEL_BUILDER(Name("DeepReduce>SupportValues").Device(tensorflow::DEVICE_CPU), SupportValuesOp);

}  // namespace
}  // namespace deepreduce
