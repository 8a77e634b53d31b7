// Tensors that describe the segments of a bucket: views of their elements, checks, splits. Eager calls skip shape functions, so kernels
// check what they index with.
#ifndef DEEPREDUCE_KERNELS_SEGMENT_TENSORS_H_
#define DEEPREDUCE_KERNELS_SEGMENT_TENSORS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "deepreduce_tf/cc/lib/bits/span.h"
#include "tensorflow/core/framework/op_kernel.h"

namespace deepreduce {

// A view of a tensor's elements.
template <class T>
Span<const T> View(const tensorflow::Tensor& tensor) {
  return Span<const T>(tensor.flat<T>().data(), tensor.NumElements());
}

constexpr int64_t kScalar = -2, kAnyLength = -1;

absl::Status CheckVector(const char* name, const tensorflow::Tensor& tensor, int64_t length = kAnyLength);

absl::Status CheckScalar(const char* name, const tensorflow::Tensor& tensor);

// `splits` must ascend from 0 to `total`: segment i is [splits[i], splits[i + 1]).
absl::Status CheckSplits(const char* name, const tensorflow::Tensor& tensor, int64_t segments, int64_t total);

absl::Status CheckSizes(Span<const int64_t> sizes);

// `counts[i]` indices below `sizes[i]`.
absl::Status CheckCounts(Span<const int64_t> counts, Span<const int64_t> sizes);

// Empty when `indices` are a support of a segment of `size` elements; otherwise what is wrong with them.
std::string WrongIndex(Span<const int32_t> indices, int64_t size);

// Reads an input of int64: a scalar, or a vector of a length.
absl::Status ReadInt64(tensorflow::OpKernelContext* context, const char* name, int64_t length, Span<const int64_t>* view);

std::vector<int64_t> LengthsOf(Span<const int64_t> splits);

// An output int64[lengths.size() + 1], from 0 on.
absl::Status OutputSplits(tensorflow::OpKernelContext* context, const std::string& name, const std::vector<int64_t>& lengths,
                          Span<const int64_t>* splits);

}  // namespace deepreduce

#endif  // DEEPREDUCE_KERNELS_SEGMENT_TENSORS_H_
