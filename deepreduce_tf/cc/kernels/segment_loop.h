// Splits the segments of a bucket over TensorFlow's intra-op threads.
#ifndef DEEPREDUCE_KERNELS_SEGMENT_LOOP_H_
#define DEEPREDUCE_KERNELS_SEGMENT_LOOP_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/platform/threadpool.h"

namespace deepreduce {

// Runs a body once per segment, the heaviest first, each time on some worker. Scratch memory can be kept per worker.
class SegmentLoop {
 public:
  // `weights`: about the number of elements each segment touches.
  SegmentLoop(tensorflow::OpKernelContext* context, std::vector<int64_t> weights);

  int workers() const { return workers_; }

  void Run(const std::function<void(int worker, int64_t segment)>& body);

 private:
  std::vector<int64_t> weights_;
  tensorflow::thread::ThreadPool* pool_;
  int workers_;
};

// The first error of a loop's workers.
class SharedStatus {
 public:
  void Update(const absl::Status& status);
  absl::Status Get();

 private:
  absl::Mutex mutex_;
  absl::Status status_;
};

}  // namespace deepreduce

#endif  // DEEPREDUCE_KERNELS_SEGMENT_LOOP_H_
