#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/shape_inference.h"

namespace deepreduce {
namespace {

using tensorflow::shape_inference::InferenceContext;

absl::Status UnknownVectors(InferenceContext* c) {
  for (int i = 0; i < c->num_outputs(); ++i) c->set_output(i, c->Vector(c->UnknownDim()));
  return absl::OkStatus();
}

REGISTER_OP("DeepReduce>FramePack")
    .Attr("index_codec: int")
    .Attr("value_codec: int")
    .Input("index_code: uint8")
    .Input("index_splits: int64")
    .Input("value_code: uint8")
    .Input("value_splits: int64")
    .Input("counts: int64")
    .Input("sizes: int64")
    .Input("widths: int64")
    .Input("seed: int64")
    .Input("step: int64")
    .Input("fingerprint: int64")
    .Output("payload: int64")
    .Output("payload_bytes: double")
    .Output("indices: double")
    .Output("index_bits: double")
    .Output("value_bits: double")
    .Output("bound_bits: double")
    .SetShapeFn([](InferenceContext* c) {
      c->set_output(0, c->Vector(c->UnknownDim()));
      for (int i = 1; i < c->num_outputs(); ++i) c->set_output(i, c->Scalar());
      return absl::OkStatus();
    })
    .Doc(R"doc(
Packs the codes of one bucket into a frame: docs/format.md.

index_codec: id of the index codec.
value_codec: id of the value codec.
index_code: uint8[index bytes], of all segments.
index_splits: int64[segments + 1].
value_code: uint8[value bytes], of all segments.
value_splits: int64[segments + 1].
counts: int64[segments], indices kept.
sizes: int64[segments], elements of the dense form.
widths: int64[segments], values per index.
seed: scalar; its low 32 bits are used.
step: scalar.
fingerprint: scalar, of the plan.
payload: int64[length of the frame / 8].
payload_bytes: scalar, bytes of the frame.
indices: scalar, indices kept, of all segments.
index_bits: scalar, bits of the index codes.
value_bits: scalar, bits of the value codes.
bound_bits: scalar, the sum over the segments of log2 C(size, count).
)doc");

#define DEEPREDUCE_FRAME_OP(name) \
  REGISTER_OP("DeepReduce>" name) \
      .Attr("index_codec: int")   \
      .Attr("value_codec: int")   \
      .Input("payload: int64")    \
      .Input("sizes: int64")      \
      .Input("fingerprint: int64")

DEEPREDUCE_FRAME_OP("FrameDecodeSum")
    .Attr("N: int >= 1")
    .Input("scale: float")
    .Output("sums: N * float")
    .SetShapeFn(UnknownVectors)
    .Doc(R"doc(
Decodes the frames of all ranks and adds them, times a scale, into one dense tensor per segment. In the order of the frames.

A frame that does not match, or that no encoder writes, is a DataLoss error that names the rank, the segment and both values.

payload: int64[n], frames end to end.
sizes: int64[N], elements of each dense tensor.
fingerprint: scalar, of this rank's plan.
scale: scalar.
sums: float32[sizes[i]] each.
)doc");

DEEPREDUCE_FRAME_OP("FrameDecode")
    .Input("widths: int64")
    .Output("indices: int32")
    .Output("values: float")
    .Output("splits: int64")
    .SetShapeFn(UnknownVectors)
    .Doc(R"doc(
Decodes the frames of all ranks without adding them.

payload: int64[n], frames end to end.
sizes: int64[segments].
fingerprint: scalar, of this rank's plan.
widths: int64[segments], values per index.
indices: int32[total].
values: float32[total values], `width` for each index.
splits: int64[frames * segments + 1], of `indices`; frame by frame.
)doc");

DEEPREDUCE_FRAME_OP("FrameUnpack")
    .Input("widths: int64")
    .Input("rank: int64")
    .Output("index_code: uint8")
    .Output("index_splits: int64")
    .Output("value_code: uint8")
    .Output("value_splits: int64")
    .Output("counts: int64")
    .Output("seed: int64")
    .Output("step: int64")
    .SetShapeFn([](InferenceContext* c) {
      for (int i = 0; i < 5; ++i) c->set_output(i, c->Vector(c->UnknownDim()));
      c->set_output(5, c->Scalar());
      c->set_output(6, c->Scalar());
      return absl::OkStatus();
    })
    .Doc(R"doc(
The codes of one of the frames, for stages that decode with TensorFlow ops.

payload: int64[n], frames end to end.
sizes: int64[segments].
fingerprint: scalar, of this rank's plan.
widths: int64[segments].
rank: scalar, which frame.
index_code: uint8[index bytes].
index_splits: int64[segments + 1].
value_code: uint8[value bytes].
value_splits: int64[segments + 1].
counts: int64[segments], indices kept.
seed: scalar, the sender's.
step: scalar, the sender's.
)doc");

REGISTER_OP("DeepReduce>ScatterSum")
    .Attr("N: int >= 1")
    .Input("indices: int32")
    .Input("values: float")
    .Input("splits: int64")
    .Input("sizes: int64")
    .Input("scale: float")
    .Output("sums: N * float")
    .SetShapeFn(UnknownVectors)
    .Doc(R"doc(
Adds decoded parts, times a scale, into one dense tensor per segment.

indices: int32[total], ascending strictly within a part.
values: float32[total].
splits: int64[ranks * N + 1]: part r * N + i is what rank r adds to segment i.
sizes: int64[N], elements of each dense tensor.
scale: scalar.
sums: float32[sizes[i]] each.
)doc");

}  // namespace
}  // namespace deepreduce
