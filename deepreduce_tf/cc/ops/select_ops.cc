#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/shape_inference.h"

namespace deepreduce {
namespace {

using tensorflow::shape_inference::InferenceContext;

// indices[total], values[total], splits[segments + 1]
absl::Status SelectShape(InferenceContext* c) {
  int segments;
  absl::Status status = c->GetAttr("N", &segments);
  if (!status.ok()) return status;
  c->set_output(0, c->Vector(c->UnknownDim()));
  c->set_output(1, c->Vector(c->UnknownDim()));
  c->set_output(2, c->Vector(segments + 1));
  return absl::OkStatus();
}

// Selection changes residuals, and must run on every rank at every step even when its inputs are constant: all are stateful.
#define DEEPREDUCE_SELECT_OP(name) \
  REGISTER_OP("DeepReduce>" name).Attr("N: int >= 1").Attr("M: int >= 0").Input("gradients: N * float").Input("residuals: M * resource")

DEEPREDUCE_SELECT_OP("TopKSelect")
    .Input("ratio: double")
    .Output("indices: int32")
    .Output("values: float")
    .Output("splits: int64")
    .SetIsStateful()
    .SetShapeFn(SelectShape)
    .Doc(R"doc(
Adds each gradient to its residual and keeps the places of largest magnitude, exactly; among equals the lower ones.

A gradient with a value that is not finite is selected from as it is, non-finite values first, and its residual stays as it was.

gradients: float32, any shapes; each is one segment.
residuals: empty (no error feedback), or one float32 resource variable per gradient with as many elements. Left holding residual + gradient.
ratio: scalar in (0, 1]; max(1, round(ratio * size)) places are kept of each segment that has any.
indices: int32[total], ascending within a segment.
values: float32[total], residual + gradient at these places.
splits: int64[N + 1]; segment i is [splits[i], splits[i + 1]).
)doc");

DEEPREDUCE_SELECT_OP("ThresholdSelect")
    .Input("threshold: float")
    .Output("indices: int32")
    .Output("values: float")
    .Output("splits: int64")
    .SetIsStateful()
    .SetShapeFn(SelectShape)
    .Doc(R"doc(
Adds each gradient to its residual and keeps the places whose magnitude is at least a threshold.

See TopKSelect for the other inputs and the outputs.

threshold: scalar, positive, in the unit of the gradients. May keep nothing, or everything.
)doc");

DEEPREDUCE_SELECT_OP("RandomKSelect")
    .Input("ratio: double")
    .Input("seed: int64")
    .Input("step: int64")
    .Output("indices: int32")
    .Output("values: float")
    .Output("splits: int64")
    .SetIsStateful()
    .SetShapeFn(SelectShape)
    .Doc(R"doc(
Adds each gradient to its residual and keeps places that are a function of seed, step and segment alone: the same on every rank.

See TopKSelect for the other inputs and the outputs; docs/format/index_codes.md, "Seeded support", for the function.

seed: scalar; its low 32 bits are used.
step: scalar.
)doc");

DEEPREDUCE_SELECT_OP("SupportValues")
    .Input("indices: int32")
    .Input("splits: int64")
    .Output("values: float")
    .SetIsStateful()
    .SetShapeFn([](InferenceContext* c) {
      c->set_output(0, c->input(c->num_inputs() - 2));
      return absl::OkStatus();
    })
    .Doc(R"doc(
The values at a support that an index codec changed, after selection has left residual + gradient in the residuals.

gradients: float32, any shapes; each is one segment. The values of one that is not finite are its first non-finite value.
residuals: empty, and the values are the gradients'; or one float32 resource variable per gradient.
indices: int32[total], ascending strictly within a segment, below its size.
splits: int64[N + 1].
values: float32[total].
)doc");

REGISTER_OP("DeepReduce>ResidualCommit")
    .Attr("N: int >= 1")
    .Input("residuals: N * resource")
    .Input("indices: int32")
    .Input("sent: float")
    .Input("splits: int64")
    .Input("sizes: int64")
    .SetIsStateful()
    .SetShapeFn([](InferenceContext*) { return absl::OkStatus(); })
    .Doc(R"doc(
Subtracts what was sent from the residuals, which hold residual + gradient since selection. To be run after the exchange.

residuals: float32 resource variables, one per segment.
indices: int32[total], the places that were sent.
sent: float32[total], the values that receivers decode. A segment in which one is not finite keeps its residual.
splits: int64[N + 1].
sizes: int64[N], elements of each residual.
)doc");

}  // namespace
}  // namespace deepreduce
