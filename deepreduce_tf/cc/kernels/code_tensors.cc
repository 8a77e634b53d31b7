#include "deepreduce_tf/cc/kernels/code_tensors.h"

#include "absl/strings/str_cat.h"
#include "deepreduce_tf/cc/lib/bits/limits.h"

namespace deepreduce {

absl::Status Codes::Read(tensorflow::OpKernelContext* context, int64_t segments) {
  const tensorflow::Tensor *code, *splits_input;
  absl::Status status = context->input("code", &code);
  if (status.ok()) status = context->input("code_splits", &splits_input);
  if (status.ok()) status = CheckVector("code", *code);
  if (status.ok()) status = ReadInt64(context, "counts", segments, &counts);
  if (status.ok()) status = CheckSplits("code_splits", *splits_input, static_cast<int64_t>(counts.size), code->NumElements());
  if (!status.ok()) return status;
  bytes = View<uint8_t>(*code);
  splits = View<int64_t>(*splits_input);
  if (segments != kAnyLength) return status;
  for (int64_t count : counts) {
    if (count < 0 || count > kMaxSize) {
      return absl::InvalidArgumentError(absl::StrCat("`counts` must be in [0, ", kMaxSize, "]. Received: ", count));
    }
  }
  return status;
}

absl::Status DamagedCode(const char* kind, int64_t segment, const Error& error) {
  if (error.ok()) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat("the ", kind, " code of segment ", segment, " is damaged: ", error.name, " at byte ", error.position, " of it"));
}

}  // namespace deepreduce
