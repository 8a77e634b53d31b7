#include "deepreduce_tf/cc/kernels/segment_tensors.h"

#include <numeric>

#include "absl/strings/str_cat.h"
#include "deepreduce_tf/cc/lib/bits/limits.h"
#include "deepreduce_tf/cc/lib/bits/raw_indices.h"

namespace deepreduce {

using tensorflow::OpKernelContext;
using tensorflow::Tensor;

absl::Status CheckVector(const char* name, const Tensor& tensor, int64_t length) {
  if (tensor.dims() == 1 && (length == kAnyLength || tensor.NumElements() == length)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("`", name, "` must be a vector",
                                                 length != kAnyLength ? absl::StrCat(" of ", length, " elements") : std::string(),
                                                 ". Received: shape=", tensor.shape().DebugString()));
}

absl::Status CheckScalar(const char* name, const Tensor& tensor) {
  if (tensor.dims() == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("`", name, "` must be a scalar. Received: shape=", tensor.shape().DebugString()));
}

absl::Status CheckSplits(const char* name, const Tensor& tensor, int64_t segments, int64_t total) {
  absl::Status status = CheckVector(name, tensor, segments + 1);
  if (!status.ok()) return status;
  const Span<const int64_t> splits = View<int64_t>(tensor);
  if (splits[0] != 0 || splits[segments] != total) {
    return absl::InvalidArgumentError(
        absl::StrCat("`", name, "` must go from 0 to ", total, ". Received: ", splits[0], " to ", splits[segments]));
  }
  for (int64_t i = 0; i < segments; ++i) {
    if (splits[i] > splits[i + 1]) {
      return absl::InvalidArgumentError(
          absl::StrCat("`", name, "` must not decrease. Received: ", splits[i], " followed by ", splits[i + 1], " at segment ", i));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckSizes(Span<const int64_t> sizes) {
  for (size_t i = 0; i < sizes.size; ++i) {
    if (sizes[i] < 0 || sizes[i] > kMaxSize) {
      return absl::InvalidArgumentError(
          absl::StrCat("a segment must have 0 to ", kMaxSize, " elements. Received: size=", sizes[i], " at segment ", i));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckCounts(Span<const int64_t> counts, Span<const int64_t> sizes) {
  absl::Status status = CheckSizes(sizes);
  if (!status.ok()) return status;
  for (size_t i = 0; i < sizes.size; ++i) {
    if (counts[i] < 0 || counts[i] > sizes[i]) {
      return absl::InvalidArgumentError(
          absl::StrCat("a segment keeps 0 to size indices. Received: count=", counts[i], ", size=", sizes[i], " at segment ", i));
    }
  }
  return absl::OkStatus();
}

std::string WrongIndex(Span<const int32_t> indices, int64_t size) {
  if (IsSupport(indices, size)) return "";
  int64_t previous = -1;
  for (int32_t index : indices) {
    if (index <= previous || index >= size) {
      return absl::StrCat("the indices of a segment must ascend strictly in [0, ", size, "). Received: ", index, " after ", previous);
    }
    previous = index;
  }
  return "";
}

absl::Status ReadInt64(OpKernelContext* context, const char* name, int64_t length, Span<const int64_t>* view) {
  const Tensor* tensor;
  absl::Status status = context->input(name, &tensor);
  if (status.ok()) status = length == kScalar ? CheckScalar(name, *tensor) : CheckVector(name, *tensor, length);
  if (status.ok()) *view = View<int64_t>(*tensor);
  return status;
}

std::vector<int64_t> LengthsOf(Span<const int64_t> splits) {
  std::vector<int64_t> lengths(splits.size - 1);
  for (size_t i = 0; i < lengths.size(); ++i) lengths[i] = splits[i + 1] - splits[i];
  return lengths;
}

absl::Status OutputSplits(OpKernelContext* context, const std::string& name, const std::vector<int64_t>& lengths,
                          Span<const int64_t>* splits) {
  Tensor* output;
  absl::Status status = context->allocate_output(name, {static_cast<int64_t>(lengths.size()) + 1}, &output);
  if (!status.ok()) return status;
  int64_t* const out = output->flat<int64_t>().data();
  out[0] = 0;
  std::partial_sum(lengths.begin(), lengths.end(), out + 1);
  *splits = View<int64_t>(*output);
  return absl::OkStatus();
}

}  // namespace deepreduce
