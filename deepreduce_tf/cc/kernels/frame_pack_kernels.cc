// The codes of one bucket into a frame.
#include <cmath>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "deepreduce_tf/cc/kernels/segment_tensors.h"
#include "deepreduce_tf/cc/lib/bits/limits.h"
#include "deepreduce_tf/cc/lib/frame.h"

namespace deepreduce {
namespace {

using tensorflow::OpKernelConstruction;
using tensorflow::OpKernelContext;
using tensorflow::Tensor;

// log2 of the number of supports of `count` indices below `size`.
double BoundBits(double size, double count) {
  const auto log_factorial = [](double x) {
    int sign;
    return lgamma_r(x + 1, &sign);
  };
  return (log_factorial(size) - log_factorial(count) - log_factorial(size - count)) / std::log(2.0);
}

class FramePackOp : public tensorflow::OpKernel {
 public:
  explicit FramePackOp(OpKernelConstruction* context) : OpKernel(context) {
    OP_REQUIRES_OK(context, context->GetAttr("index_codec", &index_codec_));
    OP_REQUIRES_OK(context, context->GetAttr("value_codec", &value_codec_));
  }

  void Compute(OpKernelContext* context) override {
    Span<const int64_t> sizes, widths, counts, seed, step, fingerprint;
    OP_REQUIRES_OK(context, ReadInt64(context, "sizes", kAnyLength, &sizes));
    const int64_t n = static_cast<int64_t>(sizes.size);
    OP_REQUIRES(context, n > 0, absl::InvalidArgumentError("a frame needs at least one segment. Received: sizes=[]"));
    OP_REQUIRES_OK(context, ReadInt64(context, "widths", n, &widths));
    OP_REQUIRES_OK(context, ReadInt64(context, "counts", n, &counts));
    OP_REQUIRES_OK(context, ReadInt64(context, "seed", kScalar, &seed));
    OP_REQUIRES_OK(context, ReadInt64(context, "step", kScalar, &step));
    OP_REQUIRES_OK(context, ReadInt64(context, "fingerprint", kScalar, &fingerprint));
    OP_REQUIRES_OK(context, CheckCounts(counts, sizes));
    const Tensor *index_code, *index_splits, *value_code, *value_splits;
    OP_REQUIRES_OK(context, context->input("index_code", &index_code));
    OP_REQUIRES_OK(context, context->input("index_splits", &index_splits));
    OP_REQUIRES_OK(context, context->input("value_code", &value_code));
    OP_REQUIRES_OK(context, context->input("value_splits", &value_splits));
    OP_REQUIRES_OK(context, CheckVector("index_code", *index_code));
    OP_REQUIRES_OK(context, CheckVector("value_code", *value_code));
    OP_REQUIRES_OK(context, CheckSplits("index_splits", *index_splits, n, index_code->NumElements()));
    OP_REQUIRES_OK(context, CheckSplits("value_splits", *value_splits, n, value_code->NumElements()));
    const std::vector<int64_t> index_lengths = LengthsOf(View<int64_t>(*index_splits)),
                               value_lengths = LengthsOf(View<int64_t>(*value_splits));

    std::vector<FrameRow> rows(n);
    double kept = 0, bound_bits = 0;
    for (int64_t i = 0; i < n; ++i) {
      OP_REQUIRES(context, widths[i] >= 1 && widths[i] <= kMaxSize / std::max<int64_t>(1, counts[i]),
                  absl::InvalidArgumentError(absl::StrCat("a segment sends at most ", kMaxSize, " values in rows of at least 1. Received: ",
                                                          counts[i], " rows of ", widths[i], " in segment ", i)));
      constexpr int64_t kMaxBytes = 0xffffffff;
      OP_REQUIRES(context, index_lengths[i] <= kMaxBytes && value_lengths[i] <= kMaxBytes,
                  absl::InvalidArgumentError(absl::StrCat("a code must have at most ", kMaxBytes, " bytes. Received: ", index_lengths[i],
                                                          " and ", value_lengths[i], " in segment ", i)));
      rows[i] = {static_cast<uint32_t>(sizes[i]), static_cast<uint32_t>(counts[i]), static_cast<uint32_t>(widths[i]),
                 static_cast<uint32_t>(index_lengths[i]), static_cast<uint32_t>(value_lengths[i])};
      kept += static_cast<double>(counts[i]);
      bound_bits += BoundBits(static_cast<double>(sizes[i]), static_cast<double>(counts[i]));
    }
    FrameHeader header;
    header.index_codec = static_cast<uint8_t>(index_codec_);
    header.value_codec = static_cast<uint8_t>(value_codec_);
    header.segments = static_cast<uint32_t>(n);
    header.seed = static_cast<uint32_t>(seed[0]);
    header.step = static_cast<uint64_t>(step[0]);
    header.fingerprint = static_cast<uint64_t>(fingerprint[0]);
    const size_t length = FrameLength(rows), codes = FrameCodesOffset(rows);
    Tensor* payload;
    OP_REQUIRES_OK(context, context->allocate_output("payload", {static_cast<int64_t>(length / 8)}, &payload));
    uint8_t* bytes = reinterpret_cast<uint8_t*>(payload->flat<int64_t>().data());
    WriteFrameHeader(header, rows, bytes);
    const size_t index_bytes = index_code->NumElements(), value_bytes = value_code->NumElements();
    if (index_bytes > 0) std::memcpy(bytes + codes, index_code->flat<uint8_t>().data(), index_bytes);
    if (value_bytes > 0) std::memcpy(bytes + codes + index_bytes, value_code->flat<uint8_t>().data(), value_bytes);
    std::memset(bytes + codes + index_bytes + value_bytes, 0, length - codes - index_bytes - value_bytes);
    const std::pair<const char*, double> metrics[] = {{"payload_bytes", static_cast<double>(length)},
                                                      {"indices", kept},
                                                      {"index_bits", 8.0 * index_bytes},
                                                      {"value_bits", 8.0 * value_bytes},
                                                      {"bound_bits", bound_bits}};
    for (const auto& [name, value] : metrics) {
      Tensor* metric;
      OP_REQUIRES_OK(context, context->allocate_output(name, {}, &metric));
      metric->scalar<double>()() = value;
    }
  }

 private:
  int index_codec_, value_codec_;
};

REGISTER_KERNEL_BUILDER(Name("DeepReduce>FramePack").Device(tensorflow::DEVICE_CPU), FramePackOp);

}  // namespace
}  // namespace deepreduce
