#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/shape_inference.h"

namespace deepreduce {
namespace {

using tensorflow::shape_inference::DimensionHandle;
using tensorflow::shape_inference::InferenceContext;
using tensorflow::shape_inference::ShapeHandle;

// output 0: bytes or places; output 1: splits, one more than there are sizes (input `sizes`)
template <int kSizes>
absl::Status CodeShape(InferenceContext* c) {
  ShapeHandle sizes;
  DimensionHandle ends;
  absl::Status status = c->WithRank(c->input(kSizes), 1, &sizes);
  if (status.ok()) status = c->Add(c->Dim(sizes, 0), 1, &ends);
  if (!status.ok()) return status;
  c->set_output(0, c->Vector(c->UnknownDim()));
  c->set_output(1, c->Vector(ends));
  return absl::OkStatus();
}

// `inputs` and `doc`: of what an encoder is given beyond the support.
#define DEEPREDUCE_INDEX_ENCODER_WITH(name, inputs, doc)                                   \
  REGISTER_OP("DeepReduce>" name "Encode")                                                 \
      .Input("indices: int32")                                                             \
      .Input("splits: int64")                                                              \
      .Input("sizes: int64")                                                               \
      .Input("seed: int64")                                                                \
      .Input("step: int64") inputs.Output("code: uint8")                                   \
      .Output("code_splits: int64")                                                        \
      .SetShapeFn(CodeShape<2>)                                                            \
      .Doc("Codes supports by " name                                                       \
           ", or raw where that is shorter: docs/format/index_codes.md.\n\n"               \
           "indices: int32[total], ascending strictly within a segment, below its size.\n" \
           "splits: int64[segments + 1].\n"                                                \
           "sizes: int64[segments], places of the dense form, at most 2^31 - 1.\n"         \
           "seed: scalar.\n"                                                               \
           "step: scalar.\n" doc                                                           \
           "code: uint8[bytes], the codes of all segments.\n"                              \
           "code_splits: int64[segments + 1].\n")

#define DEEPREDUCE_INDEX_DECODER(name)                                           \
  REGISTER_OP("DeepReduce>" name "Decode")                                       \
      .Input("code: uint8")                                                      \
      .Input("code_splits: int64")                                               \
      .Input("counts: int64")                                                    \
      .Input("sizes: int64")                                                     \
      .Input("seed: int64")                                                      \
      .Input("step: int64")                                                      \
      .Output("indices: int32")                                                  \
      .Output("splits: int64")                                                   \
      .SetShapeFn(CodeShape<3>)                                                  \
      .Doc("Inverse of " name                                                    \
           "Encode. Bytes that docs/format.md refuses are a DataLoss error.\n\n" \
           "code: uint8[bytes].\n"                                               \
           "code_splits: int64[segments + 1].\n"                                 \
           "counts: int64[segments], places kept.\n"                             \
           "sizes: int64[segments], places of the dense form.\n"                 \
           "seed: scalar, the sender's.\n"                                       \
           "step: scalar, the sender's.\n"                                       \
           "indices: int32[total].\n"                                            \
           "splits: int64[segments + 1].\n")

#define DEEPREDUCE_INDEX_CODEC(id, name)      \
  DEEPREDUCE_INDEX_ENCODER_WITH(#name, , ""); \
  DEEPREDUCE_INDEX_DECODER(#name);
#define DEEPREDUCE_INDEX_CODEC_OF_SHAPE(id, name)                                                                                      \
  DEEPREDUCE_INDEX_ENCODER_WITH(#name, .Input("dimensions: int64"),                                                                    \
                                "dimensions: int64[segments, 2], the last two dimensions of each shape; 1 and 1 for no structure.\n"); \
  DEEPREDUCE_INDEX_DECODER(#name);
#define DEEPREDUCE_INDEX_CODEC_WITH_OWN_ENCODER(id, name) DEEPREDUCE_INDEX_DECODER(#name);
#include "deepreduce_tf/cc/lib/index/index_codecs.def"

constexpr char kBloomPolicyAttribute[] =
    "policy: {"
#define DEEPREDUCE_BLOOM_POLICY(policy, name) "'" name "', "
#include "deepreduce_tf/cc/lib/index/bloom_policies.def"
    "} = 'p2'";

REGISTER_OP("DeepReduce>BloomFilterEncode")
    .Attr("fpr: float = 0.001")
    .Attr(kBloomPolicyAttribute)
    .Input("indices: int32")
    .Input("splits: int64")
    .Input("sizes: int64")
    .Input("seed: int64")
    .Input("step: int64")
    .Output("code: uint8")
    .Output("code_splits: int64")
    .Output("support: int32")
    .Output("support_splits: int64")
    .SetShapeFn([](InferenceContext* c) {
      absl::Status status = CodeShape<2>(c);
      if (!status.ok()) return status;
      c->set_output(2, c->Vector(c->UnknownDim()));
      c->set_output(3, c->output(1));
      return status;
    })
    .Doc(R"doc(
Codes supports by a Bloom filter each, which makes other supports of them: docs/format/index_codes.md, "BloomFilter".

fpr: false positive rate, 1e-9 to 0.999.
indices: int32[total], ascending strictly within a segment, below its size.
splits: int64[segments + 1].
sizes: int64[segments], places of the dense form, at most 2^31 - 1.
seed: scalar.
step: scalar.
code: uint8[bytes], the codes of all segments.
code_splits: int64[segments + 1].
support: int32[places], what BloomFilterDecode gives, with the lengths of these splits as counts.
support_splits: int64[segments + 1].
)doc");

}  // namespace
}  // namespace deepreduce
