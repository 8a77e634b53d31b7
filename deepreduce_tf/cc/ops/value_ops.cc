#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/shape_inference.h"

namespace deepreduce {
namespace {

using tensorflow::shape_inference::InferenceContext;

absl::Status EncodeShape(InferenceContext* c) {
  c->set_output(0, c->Vector(c->UnknownDim()));
  c->set_output(1, c->input(1));
  c->set_output(2, c->input(0));
  return absl::OkStatus();
}

absl::Status DecodeShape(InferenceContext* c) {
  c->set_output(0, c->Vector(c->UnknownDim()));
  return absl::OkStatus();
}

#define DEEPREDUCE_VALUE_ENCODE_OP(name)                                               \
  REGISTER_OP("DeepReduce>" name "Encode")                                             \
      .Input("values: float")                                                          \
      .Input("splits: int64")                                                          \
      .Input("seed: int64")                                                            \
      .Input("step: int64")                                                            \
      .Output("code: uint8")                                                           \
      .Output("code_splits: int64")                                                    \
      .Output("decoded: float")                                                        \
      .SetShapeFn(EncodeShape)                                                         \
      .Doc("Codes values by " name                                                     \
           ", or raw where that is shorter or a value is not finite: docs/format.md, " \
           "\"Value codes\".\n\n"                                                      \
           "values: float32[total].\n"                                                 \
           "splits: int64[segments + 1].\n"                                            \
           "seed: scalar, of stochastic rounding; must differ by rank.\n"              \
           "step: scalar.\n"                                                           \
           "code: uint8[bytes], the codes of all segments.\n"                          \
           "code_splits: int64[segments + 1].\n"                                       \
           "decoded: float32[total], what receivers will see.\n")

#define DEEPREDUCE_VALUE_DECODE_OP(name)                                    \
  REGISTER_OP("DeepReduce>" name "Decode")                                  \
      .Input("code: uint8")                                                 \
      .Input("code_splits: int64")                                          \
      .Input("counts: int64")                                               \
      .Output("values: float")                                              \
      .SetShapeFn(DecodeShape)                                              \
      .Doc("Inverse of " name                                               \
           "Encode. Bytes that no encoder writes are a DataLoss error.\n\n" \
           "code: uint8[bytes].\n"                                          \
           "code_splits: int64[segments + 1].\n"                            \
           "counts: int64[segments], values of each segment.\n"             \
           "values: float32[total].\n")

#define DEEPREDUCE_VALUE_CODEC(id, name) \
  DEEPREDUCE_VALUE_ENCODE_OP(#name);     \
  DEEPREDUCE_VALUE_DECODE_OP(#name);
#define DEEPREDUCE_VALUE_CODEC_WITH_OPTIONS(id, name) DEEPREDUCE_VALUE_DECODE_OP(#name);
#define DEEPREDUCE_VALUE_CODEC_WITH_OWN_ENCODER(id, name) DEEPREDUCE_VALUE_DECODE_OP(#name);
#include "deepreduce_tf/cc/lib/value/value_codecs.def"

DEEPREDUCE_VALUE_ENCODE_OP("QSGD").Attr("bits: int = 8").Attr("norm: {'max', 'l2'} = 'max'").Attr("contraction: bool = false");
DEEPREDUCE_VALUE_ENCODE_OP("LogQuantizer").Attr("bits: int = 8");
DEEPREDUCE_VALUE_ENCODE_OP("SketchML").Attr("bits: int = 4");
DEEPREDUCE_VALUE_ENCODE_OP("PolyFit").Attr("degree: int = 5").Attr("pieces: int = 0");
DEEPREDUCE_VALUE_ENCODE_OP("TernGrad").Attr("contraction: bool = false");
DEEPREDUCE_VALUE_ENCODE_OP("ThreeLC").Attr("multiplier: float = 1.0");

REGISTER_OP("DeepReduce>DeflateEncode")
    .Input("values: float")
    .Input("inner_decoded: float")
    .Input("splits: int64")
    .Input("inner_code: uint8")
    .Input("inner_splits: int64")
    .Attr("inner: int = 1")
    .Attr("level: int = 6")
    .Attr("shuffle: bool = true")
    .Output("code: uint8")
    .Output("code_splits: int64")
    .Output("decoded: float")
    .SetShapeFn([](InferenceContext* c) {
      c->set_output(0, c->Vector(c->UnknownDim()));
      c->set_output(1, c->input(2));
      c->set_output(2, c->input(0));
      return absl::OkStatus();
    })
    .Doc(R"doc(Deflates what another value codec wrote, by zlib-ng: docs/format/value_codes.md, "Deflate".

values: float32[total], what the inner codec was given.
inner_decoded: float32[total], what receivers would see of the inner code.
splits: int64[segments + 1].
inner_code: uint8[bytes], the codes of all segments.
inner_splits: int64[segments + 1].
inner: id of the inner codec; 255 for one of the application, whose code is never replaced by raw values.
level: effort, 1 to 9.
shuffle: whether bytes of equal weight are brought together first, where the inner code is whole numbers of 2 or 4 bytes.
code: uint8[bytes], the codes of all segments.
code_splits: int64[segments + 1].
decoded: float32[total], what receivers will see.
)doc");

REGISTER_OP("DeepReduce>Inflate")
    .Input("code: uint8")
    .Input("code_splits: int64")
    .Input("counts: int64")
    .Output("inner_code: uint8")
    .Output("inner_splits: int64")
    .SetShapeFn([](InferenceContext* c) {
      c->set_output(0, c->Vector(c->UnknownDim()));
      c->set_output(1, c->input(1));
      return absl::OkStatus();
    })
    .Doc(R"doc(What DeflateEncode was given as the codes of an application's codec. Bytes that no encoder writes are a DataLoss error.

code: uint8[bytes].
code_splits: int64[segments + 1].
counts: int64[segments], values of each segment; a deflated code of more than 1024 bytes and 16 for each value is refused.
inner_code: uint8[bytes].
inner_splits: int64[segments + 1].
)doc");

}  // namespace
}  // namespace deepreduce
