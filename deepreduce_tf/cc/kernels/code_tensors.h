// Codes of segments as tensors: the bytes of all segments end to end, and their splits.
#ifndef DEEPREDUCE_KERNELS_CODE_TENSORS_H_
#define DEEPREDUCE_KERNELS_CODE_TENSORS_H_

#include <cstring>
#include <string>
#include <vector>

#include "deepreduce_tf/cc/kernels/segment_tensors.h"
#include "deepreduce_tf/cc/lib/bits/error.h"

namespace deepreduce {

// The inputs of a decoder: `code`, `code_splits`, and `counts`, how many indices or values each code holds.
struct Codes {
  Span<const uint8_t> bytes;
  Span<const int64_t> splits, counts;

  // `segments`: their number where sizes tell it; the caller compares counts with these.
  absl::Status Read(tensorflow::OpKernelContext* context, int64_t segments = kAnyLength);

  Span<const uint8_t> Of(int64_t segment) const { return bytes.subspan(splits[segment], splits[segment + 1] - splits[segment]); }
};

// `kind`: "index" or "value".
absl::Status DamagedCode(const char* kind, int64_t segment, const Error& error);

// Two outputs: the codes of all segments, each copied from `start(segment)`.
template <class Start>
absl::Status OutputCodes(tensorflow::OpKernelContext* context, const std::string& code_name, const std::string& splits_name,
                         const std::vector<int64_t>& lengths, Start start) {
  Span<const int64_t> splits;
  absl::Status status = OutputSplits(context, splits_name, lengths, &splits);
  if (!status.ok()) return status;
  const int64_t n = static_cast<int64_t>(lengths.size());
  tensorflow::Tensor* code;
  status = context->allocate_output(code_name, {splits[n]}, &code);
  if (!status.ok()) return status;
  for (int64_t i = 0; i < n; ++i) {
    if (lengths[i] > 0) std::memcpy(code->flat<uint8_t>().data() + splits[i], start(i), lengths[i]);
  }
  return absl::OkStatus();
}

}  // namespace deepreduce

#endif  // DEEPREDUCE_KERNELS_CODE_TENSORS_H_
