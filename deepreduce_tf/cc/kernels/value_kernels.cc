// Value codecs as ops: one kernel class, one registration per codec of cc/lib. Deflate's encoder: deflate_kernels.cc.
#include "deepreduce_tf/cc/kernels/segment_loop.h"
#include "deepreduce_tf/cc/kernels/zlib_ng.h"
#include "deepreduce_tf/cc/lib/bits/random.h"
#include "deepreduce_tf/cc/lib/value/curve_pieces.h"  // kMaxDegree, kMaxPieces
#include "deepreduce_tf/cc/lib/value/value_codec.h"

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

template <int kCodec>
class ValueEncodeOp : public tensorflow::OpKernel {
 public:
  explicit ValueEncodeOp(OpKernelConstruction* context) : OpKernel(context) { ReadOptions(context, &options_); }

  void Compute(OpKernelContext* context) override {
    const Tensor *values, *splits, *seed, *step;
    OP_REQUIRES_OK(context, context->input("values", &values));
    OP_REQUIRES_OK(context, context->input("splits", &splits));
    OP_REQUIRES_OK(context, context->input("seed", &seed));
    OP_REQUIRES_OK(context, context->input("step", &step));
    OP_REQUIRES_OK(context, CheckVector("values", *values));
    OP_REQUIRES_OK(context, CheckVector("splits", *splits));
    OP_REQUIRES(context, splits->NumElements() > 0, absl::InvalidArgumentError("`splits` must not be empty. Received: shape=[0]"));
    const int64_t n = splits->NumElements() - 1;
    OP_REQUIRES_OK(context, CheckSplits("splits", *splits, n, values->NumElements()));
    OP_REQUIRES_OK(context, CheckScalar("seed", *seed));
    OP_REQUIRES_OK(context, CheckScalar("step", *step));
    const Span<const int64_t> ends = View<int64_t>(*splits);

    Tensor* decoded;
    OP_REQUIRES_OK(context, context->allocate_output("decoded", values->shape(), &decoded));
    Tensor room;
    OP_REQUIRES_OK(context,
                   context->allocate_temp(tensorflow::DT_UINT8, {static_cast<int64_t>(4 * values->NumElements() + n * kSlack)}, &room));
    uint8_t* bytes = room.flat<uint8_t>().data();
    std::vector<int64_t> lengths(n);
    const auto start = [&](int64_t i) { return 4 * ends[i] + i * static_cast<int64_t>(kSlack); };
    const ValueCodec& codec = *FindValueCodec(kCodec);
    SegmentLoop loop(context, Lengths(ends));
    loop.Run([&](int, int64_t i) {
      ValueOptions options = options_;
      options.noise_key = StreamKey(static_cast<uint64_t>(seed->scalar<int64_t>()()), static_cast<uint64_t>(step->scalar<int64_t>()()), i);
      lengths[i] = EncodeValues(codec, options, View<float>(*values).subspan(ends[i], ends[i + 1] - ends[i]), bytes + start(i),
                                decoded->flat<float>().data() + ends[i]);
    });

    OP_REQUIRES_OK(context, OutputCodes(context, "code", "code_splits", lengths, [&](int64_t i) { return bytes + start(i); }));
  }

 private:
  ValueOptions options_;
};

template <int kCodec>
class ValueDecodeOp : public tensorflow::OpKernel {
 public:
  explicit ValueDecodeOp(OpKernelConstruction* context) : OpKernel(context) {
    if (kCodec == kDeflateId) OP_REQUIRES_OK(context, FindZlibNg(&options_.deflate));
  }

  void Compute(OpKernelContext* context) override {
    Codes codes;
    OP_REQUIRES_OK(context, codes.Read(context));
    const Span<const int64_t> counts = codes.counts;
    const int64_t n = static_cast<int64_t>(counts.size);
    std::vector<int64_t> ends(n + 1, 0);
    for (int64_t i = 0; i < n; ++i) ends[i + 1] = ends[i] + counts[i];
    Tensor* values;
    OP_REQUIRES_OK(context, context->allocate_output("values", {ends[n]}, &values));
    SharedStatus status;
    const ValueCodec& codec = *FindValueCodec(kCodec);
    SegmentLoop loop(context, std::vector<int64_t>(counts.begin(), counts.end()));
    loop.Run([&](int, int64_t i) {
      const Span<float> decoded(values->flat<float>().data() + ends[i], counts[i]);
      status.Update(DamagedCode("value", i, DecodeValues(codec, options_, codes.Of(i), decoded)));
    });
    OP_REQUIRES_OK(context, status.Get());
  }

 private:
  ValueOptions options_;
};

#define DEEPREDUCE_REGISTER_DECODER(name, id) \
  REGISTER_KERNEL_BUILDER(Name("DeepReduce>" name "Decode").Device(tensorflow::DEVICE_CPU), ValueDecodeOp<id>)
#define DEEPREDUCE_REGISTER_VALUE_CODEC(name, id)                                                               \
  REGISTER_KERNEL_BUILDER(Name("DeepReduce>" name "Encode").Device(tensorflow::DEVICE_CPU), ValueEncodeOp<id>); \
  DEEPREDUCE_REGISTER_DECODER(name, id)

DEEPREDUCE_REGISTER_VALUE_CODEC("Float32", 1);
DEEPREDUCE_REGISTER_VALUE_CODEC("Float16", 2);
DEEPREDUCE_REGISTER_VALUE_CODEC("BFloat16", 3);
DEEPREDUCE_REGISTER_VALUE_CODEC("QSGD", 4);
DEEPREDUCE_REGISTER_VALUE_CODEC("LogQuantizer", 5);
DEEPREDUCE_REGISTER_DECODER("Deflate", kDeflateId);
DEEPREDUCE_REGISTER_VALUE_CODEC("PolyFit", 7);
DEEPREDUCE_REGISTER_VALUE_CODEC("DoubleExpFit", 8);
DEEPREDUCE_REGISTER_VALUE_CODEC("SketchML", 9);
DEEPREDUCE_REGISTER_VALUE_CODEC("TernGrad", 10);
DEEPREDUCE_REGISTER_VALUE_CODEC("Natural", 11);
DEEPREDUCE_REGISTER_VALUE_CODEC("ThreeLC", 12);

}  // namespace
}  // namespace deepreduce
