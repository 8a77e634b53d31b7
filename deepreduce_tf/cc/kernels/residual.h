// Access to the residual variables of a bucket.
#ifndef DEEPREDUCE_KERNELS_RESIDUAL_H_
#define DEEPREDUCE_KERNELS_RESIDUAL_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/resource_mgr.h"
#include "tensorflow/core/framework/resource_var.h"

namespace deepreduce {

// The residuals of an op: an input list of float32 resource variables, or an empty one without error feedback.
class Residuals {
 public:
  // Looks up the input list `residuals`, which starts at input `first`; it must be empty or match `sizes`.
  absl::Status Find(tensorflow::OpKernelContext* context, int first, const std::vector<int64_t>& sizes) {
    tensorflow::OpInputList handles;
    absl::Status status = context->input_list("residuals", &handles);
    if (!status.ok() || handles.size() == 0) return status;
    if (handles.size() != static_cast<int>(sizes.size())) {
      return absl::InvalidArgumentError(
          absl::StrCat("`residuals` must be empty or one per gradient (", sizes.size(), "). Received: ", handles.size()));
    }
    variables_.resize(sizes.size());
    for (size_t i = 0; i < sizes.size(); ++i) {
      status = LookupResource(context, tensorflow::HandleFromInput(context, first + static_cast<int>(i)), &variables_[i]);
      if (status.ok()) status = Check(i, sizes[i]);
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }

  bool empty() const { return variables_.empty(); }

  // Runs `body` with the elements of residual `segment`, or with null without error feedback. The elements are this variable's alone: a
  // value that somebody still holds (a checkpoint being written) is left to them.
  template <class Body>
  absl::Status With(tensorflow::OpKernelContext* context, int64_t segment, Body body) {
    if (variables_.empty()) {
      body(static_cast<float*>(nullptr));
      return absl::OkStatus();
    }
    tensorflow::Var* variable = variables_[segment].get();
    tensorflow::mutex_lock lock(*variable->mu());
    tensorflow::Tensor* value = variable->tensor();
    if (!value->RefCountIsOne()) {
      tensorflow::Tensor copy;
      absl::Status status = context->allocate_temp(tensorflow::DT_FLOAT, value->shape(), &copy);
      if (!status.ok()) return status;
      copy.flat<float>() = value->flat<float>();
      *value = copy;
    }
    body(value->flat<float>().data());
    return absl::OkStatus();
  }

 private:
  absl::Status Check(size_t segment, int64_t size) const {
    const tensorflow::Var* variable = variables_[segment].get();
    tensorflow::tf_shared_lock lock(*const_cast<tensorflow::Var*>(variable)->mu());
    const tensorflow::Tensor& value = *const_cast<tensorflow::Var*>(variable)->tensor();
    if (value.dtype() != tensorflow::DT_FLOAT || value.NumElements() != size) {
      return absl::InvalidArgumentError(absl::StrCat("the residual of segment ", segment, " must hold ", size,
                                                     " initialised float32 elements. Received: ", value.NumElements(), " of ",
                                                     tensorflow::DataTypeString(value.dtype())));
    }
    return absl::OkStatus();
  }

  std::vector<tensorflow::core::RefCountPtr<tensorflow::Var>> variables_;
};

}  // namespace deepreduce

#endif  // DEEPREDUCE_KERNELS_RESIDUAL_H_
