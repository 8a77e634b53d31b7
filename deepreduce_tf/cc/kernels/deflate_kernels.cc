// Deflate's encoder, behind the op of any value codec; and the way back to the code of an application's codec.
#include "absl/strings/str_cat.h"
#include "deepreduce_tf/cc/kernels/code_tensors.h"
#include "deepreduce_tf/cc/kernels/segment_loop.h"
#include "deepreduce_tf/cc/kernels/segment_tensors.h"
#include "deepreduce_tf/cc/kernels/zlib_ng.h"
#include "deepreduce_tf/cc/lib/bits/all_finite.h"
#include "deepreduce_tf/cc/lib/value/deflate.h"
#include "deepreduce_tf/cc/lib/value/value_codecs.h"

namespace deepreduce {
namespace {

using tensorflow::OpKernelConstruction;
using tensorflow::OpKernelContext;
using tensorflow::Tensor;

class DeflateEncodeOp : public tensorflow::OpKernel {
 public:
  explicit DeflateEncodeOp(OpKernelConstruction* context) : OpKernel(context) {
    int inner;
    OP_REQUIRES_OK(context, context->GetAttr("inner", &inner));
    const bool known = inner >= 0 && inner < kApplicationId && FindValueCodec(static_cast<uint8_t>(inner)) != nullptr;
    OP_REQUIRES(context, inner == kApplicationId || (known && inner != kDeflateId),
                absl::InvalidArgumentError(absl::StrCat("`inner` must be the id of another value codec. Received: inner=", inner)));
    options_.inner = static_cast<uint8_t>(inner);
    OP_REQUIRES_OK(context, context->GetAttr("level", &options_.level));
    OP_REQUIRES(context, options_.level >= 1 && options_.level <= 9,
                absl::InvalidArgumentError(absl::StrCat("`level` must be 1 to 9. Received: level=", options_.level)));
    OP_REQUIRES_OK(context, context->GetAttr("shuffle", &options_.shuffle));
    OP_REQUIRES_OK(context, FindZlibNg(&options_.deflate));
  }

  void Compute(OpKernelContext* context) override {
    const Tensor *values, *inner_decoded, *splits_input, *inner_code, *inner_splits_input;
    OP_REQUIRES_OK(context, context->input("values", &values));
    OP_REQUIRES_OK(context, context->input("inner_decoded", &inner_decoded));
    OP_REQUIRES_OK(context, context->input("splits", &splits_input));
    OP_REQUIRES_OK(context, context->input("inner_code", &inner_code));
    OP_REQUIRES_OK(context, context->input("inner_splits", &inner_splits_input));
    OP_REQUIRES_OK(context, CheckVector("values", *values));
    OP_REQUIRES_OK(context, CheckVector("inner_decoded", *inner_decoded, values->NumElements()));
    OP_REQUIRES_OK(context, CheckVector("splits", *splits_input));
    OP_REQUIRES(context, splits_input->NumElements() > 0, absl::InvalidArgumentError("`splits` must not be empty. Received: shape=[0]"));
    const int64_t n = splits_input->NumElements() - 1;
    OP_REQUIRES_OK(context, CheckSplits("splits", *splits_input, n, values->NumElements()));
    OP_REQUIRES_OK(context, CheckVector("inner_code", *inner_code));
    OP_REQUIRES_OK(context, CheckSplits("inner_splits", *inner_splits_input, n, inner_code->NumElements()));
    const Span<const int64_t> splits = View<int64_t>(*splits_input), inner_splits = View<int64_t>(*inner_splits_input);

    Tensor* decoded;
    OP_REQUIRES_OK(context, context->allocate_output("decoded", values->shape(), &decoded));
    Tensor buffer;
    const auto start = [&](int64_t i) { return 4 * splits[i] + inner_splits[i] + i * static_cast<int64_t>(kDeflateHeaderLength); };
    OP_REQUIRES_OK(context, context->allocate_temp(tensorflow::DT_UINT8, {start(n)}, &buffer));
    uint8_t* bytes = buffer.flat<uint8_t>().data();
    std::vector<int64_t> lengths(n);
    SegmentLoop loop(context, LengthsOf(splits));
    loop.Run([&](int, int64_t i) {
      lengths[i] =
          EncodeSegment(View<float>(*values).subspan(splits[i], splits[i + 1] - splits[i]), View<float>(*inner_decoded).data + splits[i],
                        View<uint8_t>(*inner_code).subspan(inner_splits[i], inner_splits[i + 1] - inner_splits[i]), bytes + start(i),
                        decoded->flat<float>().data() + splits[i]);
    });
    OP_REQUIRES_OK(context, OutputCodes(context, "code", "code_splits", lengths, [&](int64_t i) { return bytes + start(i); }));
  }

 private:
  // Raw values where the code is not shorter, but for an application's code, which has no raw form.
  size_t EncodeSegment(Span<const float> values, const float* inner_decoded, Span<const uint8_t> inner, uint8_t* out,
                       float* decoded) const {
    const size_t raw = sizeof(float) * values.size;
    const bool application = options_.inner == kApplicationId;
    const bool codes = !inner.empty() && (application || (inner.size <= raw && AllFinite(values)));
    const size_t length = codes ? DeflateCode(options_, inner, values.size, out) : 0;
    const bool as_raw = !application && (length == 0 || length >= raw);
    if (as_raw && raw > 0) std::memcpy(out, values.data, raw);
    if (raw > 0) std::memcpy(decoded, as_raw ? values.data : inner_decoded, raw);
    return as_raw ? raw : length;
  }

  ValueOptions options_;
};

class InflateOp : public tensorflow::OpKernel {
 public:
  explicit InflateOp(OpKernelConstruction* context) : OpKernel(context) { OP_REQUIRES_OK(context, FindZlibNg(&options_.deflate)); }

  void Compute(OpKernelContext* context) override {
    Codes codes;
    OP_REQUIRES_OK(context, codes.Read(context));
    const std::vector<int64_t> code_lengths = LengthsOf(codes.splits);
    const int64_t n = static_cast<int64_t>(code_lengths.size());
    std::vector<int64_t> starts(n + 1, 0);
    for (int64_t i = 0; i < n; ++i) starts[i + 1] = starts[i] + MaxBytes(code_lengths[i], codes.counts[i]);

    Tensor buffer;
    OP_REQUIRES_OK(context, context->allocate_temp(tensorflow::DT_UINT8, {starts[n]}, &buffer));
    uint8_t* bytes = buffer.flat<uint8_t>().data();
    std::vector<int64_t> lengths(n, 0);
    SharedStatus status;
    SegmentLoop loop(context, code_lengths);
    loop.Run([&](int, int64_t i) {
      if (code_lengths[i] == 0) return;
      size_t length = 0;
      const Span<uint8_t> inner(bytes + starts[i], starts[i + 1] - starts[i]);
      status.Update(DamagedCode("value", i, InflateApplicationCode(options_, codes.Of(i), codes.counts[i], inner, &length)));
      lengths[i] = static_cast<int64_t>(length);
    });
    OP_REQUIRES_OK(context, status.Get());
    OP_REQUIRES_OK(context, OutputCodes(context, "inner_code", "inner_splits", lengths, [&](int64_t i) { return bytes + starts[i]; }));
  }

 private:
  // What a code may hold: as many bytes as it has when it is stored, and no byte of a zlib stream holds more than 1032.
  static int64_t MaxBytes(int64_t code_length, int64_t count) {
    return std::max(code_length, std::min<int64_t>(1032 * code_length, MaxApplicationBytes(count)));
  }

  ValueOptions options_;
};

REGISTER_KERNEL_BUILDER(Name("DeepReduce>DeflateEncode").Device(tensorflow::DEVICE_CPU), DeflateEncodeOp);
REGISTER_KERNEL_BUILDER(Name("DeepReduce>Inflate").Device(tensorflow::DEVICE_CPU), InflateOp);

}  // namespace
}  // namespace deepreduce
