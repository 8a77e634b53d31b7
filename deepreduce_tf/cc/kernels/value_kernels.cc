// Value codecs as ops: one kernel class for the encoders, one for the decoders, registered for each codec of the registry. Deflate's
// encoder: deflate_kernels.cc.
#include "absl/strings/str_cat.h"
#include "deepreduce_tf/cc/kernels/code_tensors.h"
#include "deepreduce_tf/cc/kernels/segment_loop.h"
#include "deepreduce_tf/cc/kernels/segment_tensors.h"
#include "deepreduce_tf/cc/kernels/zlib_ng.h"
#include "deepreduce_tf/cc/lib/bits/limits.h"
#include "deepreduce_tf/cc/lib/bits/random.h"
#include "deepreduce_tf/cc/lib/value/curve_pieces.h"  // kMaxDegree, kMaxPieces
#include "deepreduce_tf/cc/lib/value/value_codecs.h"

namespace deepreduce {
namespace {

using tensorflow::OpKernelConstruction;
using tensorflow::OpKernelContext;
using tensorflow::Tensor;

// Each attribute is read where the op has it; op definitions bound their values.
void ReadOptions(OpKernelConstruction* context, ValueOptions* options) {
  if (context->HasAttr("bits")) OP_REQUIRES_OK(context, context->GetAttr("bits", &options->bits));
  OP_REQUIRES(context, options->bits >= 2 && options->bits <= 8,
              absl::InvalidArgumentError(absl::StrCat("`bits` must be 2 to 8. Received: bits=", options->bits)));
  if (context->HasAttr("norm")) {
    std::string norm;
    OP_REQUIRES_OK(context, context->GetAttr("norm", &norm));
    options->l2_norm = norm == "l2";
  }
  if (context->HasAttr("contraction")) OP_REQUIRES_OK(context, context->GetAttr("contraction", &options->contraction));
  if (context->HasAttr("degree")) OP_REQUIRES_OK(context, context->GetAttr("degree", &options->degree));
  OP_REQUIRES(context, options->degree >= 1 && options->degree <= kMaxDegree,
              absl::InvalidArgumentError(absl::StrCat("`degree` must be 1 to ", kMaxDegree, ". Received: degree=", options->degree)));
  if (context->HasAttr("pieces")) OP_REQUIRES_OK(context, context->GetAttr("pieces", &options->pieces));
  OP_REQUIRES(context, options->pieces >= 0 && options->pieces <= kMaxPieces,
              absl::InvalidArgumentError(absl::StrCat("`pieces` must be 0 to ", kMaxPieces, ". Received: pieces=", options->pieces)));
  if (context->HasAttr("multiplier")) OP_REQUIRES_OK(context, context->GetAttr("multiplier", &options->multiplier));
  OP_REQUIRES(context, options->multiplier >= 1 && options->multiplier < 2,
              absl::InvalidArgumentError(absl::StrCat("`multiplier` must be in [1, 2). Received: multiplier=", options->multiplier)));
}

template <const ValueCodec& kCodec>
class ValueEncodeOp : public tensorflow::OpKernel {
 public:
  explicit ValueEncodeOp(OpKernelConstruction* context) : OpKernel(context) { ReadOptions(context, &options_); }

  void Compute(OpKernelContext* context) override {
    const Tensor *values, *splits_input, *seed, *step;
    OP_REQUIRES_OK(context, context->input("values", &values));
    OP_REQUIRES_OK(context, context->input("splits", &splits_input));
    OP_REQUIRES_OK(context, context->input("seed", &seed));
    OP_REQUIRES_OK(context, context->input("step", &step));
    OP_REQUIRES_OK(context, CheckVector("values", *values));
    OP_REQUIRES_OK(context, CheckVector("splits", *splits_input));
    OP_REQUIRES(context, splits_input->NumElements() > 0, absl::InvalidArgumentError("`splits` must not be empty. Received: shape=[0]"));
    const int64_t n = splits_input->NumElements() - 1;
    OP_REQUIRES_OK(context, CheckSplits("splits", *splits_input, n, values->NumElements()));
    OP_REQUIRES_OK(context, CheckScalar("seed", *seed));
    OP_REQUIRES_OK(context, CheckScalar("step", *step));
    const Span<const int64_t> splits = View<int64_t>(*splits_input);

    Tensor* decoded;
    OP_REQUIRES_OK(context, context->allocate_output("decoded", values->shape(), &decoded));
    const auto start = [&](int64_t i) { return 4 * splits[i] + i * static_cast<int64_t>(kSlack); };
    Tensor buffer;
    OP_REQUIRES_OK(context, context->allocate_temp(tensorflow::DT_UINT8, {start(n)}, &buffer));
    uint8_t* bytes = buffer.flat<uint8_t>().data();
    std::vector<int64_t> lengths(n);
    SegmentLoop loop(context, LengthsOf(splits));
    loop.Run([&](int, int64_t i) {
      ValueOptions options = options_;
      options.noise_key = StreamKey(static_cast<uint64_t>(seed->scalar<int64_t>()()), static_cast<uint64_t>(step->scalar<int64_t>()()), i);
      lengths[i] = EncodeValues(kCodec, options, View<float>(*values).subspan(splits[i], splits[i + 1] - splits[i]), bytes + start(i),
                                decoded->flat<float>().data() + splits[i]);
    });

    OP_REQUIRES_OK(context, OutputCodes(context, "code", "code_splits", lengths, [&](int64_t i) { return bytes + start(i); }));
  }

 private:
  ValueOptions options_;
};

template <const ValueCodec& kCodec>
class ValueDecodeOp : public tensorflow::OpKernel {
 public:
  explicit ValueDecodeOp(OpKernelConstruction* context) : OpKernel(context) {
    if (&kCodec == &kDeflate) OP_REQUIRES_OK(context, FindZlibNg(&options_.deflate));
  }

  void Compute(OpKernelContext* context) override {
    Codes codes;
    OP_REQUIRES_OK(context, codes.Read(context));
    const Span<const int64_t> counts = codes.counts;
    const int64_t n = static_cast<int64_t>(counts.size);
    std::vector<int64_t> starts(n + 1, 0);
    for (int64_t i = 0; i < n; ++i) starts[i + 1] = starts[i] + counts[i];
    Tensor* values;
    OP_REQUIRES_OK(context, context->allocate_output("values", {starts[n]}, &values));
    SharedStatus status;
    SegmentLoop loop(context, std::vector<int64_t>(counts.begin(), counts.end()));
    loop.Run([&](int, int64_t i) {
      const Span<float> decoded(values->flat<float>().data() + starts[i], counts[i]);
      status.Update(DamagedCode("value", i, DecodeValues(kCodec, options_, codes.Of(i), decoded)));
    });
    OP_REQUIRES_OK(context, status.Get());
  }

 private:
  ValueOptions options_;
};

#define DEEPREDUCE_VALUE_DECODER(name) \
  REGISTER_KERNEL_BUILDER(Name("DeepReduce>" #name "Decode").Device(tensorflow::DEVICE_CPU), ValueDecodeOp<k##name>);

#define DEEPREDUCE_VALUE_CODEC(id, name)                                                                              \
  REGISTER_KERNEL_BUILDER(Name("DeepReduce>" #name "Encode").Device(tensorflow::DEVICE_CPU), ValueEncodeOp<k##name>); \
  DEEPREDUCE_VALUE_DECODER(name)
#define DEEPREDUCE_VALUE_CODEC_WITH_OWN_ENCODER(id, name) DEEPREDUCE_VALUE_DECODER(name)
#include "deepreduce_tf/cc/lib/value/value_codecs.def"

}  // namespace
}  // namespace deepreduce
