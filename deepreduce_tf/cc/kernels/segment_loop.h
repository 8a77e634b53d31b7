// Splits the segments of a bucket over TensorFlow's intra-op threads, and checks the tensors that describe them.
#ifndef DEEPREDUCE_KERNELS_SEGMENT_LOOP_H_
#define DEEPREDUCE_KERNELS_SEGMENT_LOOP_H_

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/mutex.h"
#include "deepreduce_tf/cc/lib/bits/error.h"
#include "deepreduce_tf/cc/lib/bits/limits.h"
#include "deepreduce_tf/cc/lib/bits/raw_indices.h"
#include "deepreduce_tf/cc/lib/bits/span.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/platform/threadpool.h"

namespace deepreduce {

// Runs a body once per segment, the heaviest first, each time on some worker. Scratch memory can be kept per worker.
class SegmentLoop {
 public:
  // `weights`: about the number of elements each segment touches.
  SegmentLoop(tensorflow::OpKernelContext* context, std::vector<int64_t> weights) : weights_(std::move(weights)) {
    constexpr int64_t kWorthAThread = 1 << 15;
    const int64_t total = std::accumulate(weights_.begin(), weights_.end(), int64_t{0});
    pool_ = context->device()->tensorflow_cpu_worker_threads()->workers;
    const int64_t most = std::min<int64_t>({pool_->NumThreads(), static_cast<int64_t>(weights_.size()), total / kWorthAThread});
    workers_ = static_cast<int>(std::max<int64_t>(1, most));
  }

  int workers() const { return workers_; }

  void Run(const std::function<void(int worker, int64_t segment)>& body) {
    std::vector<int64_t> order(weights_.size());
    std::iota(order.begin(), order.end(), 0);
    if (workers_ == 1) {
      for (int64_t segment : order) body(0, segment);
      return;
    }
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return weights_[a] > weights_[b]; });
    std::atomic<size_t> next{0};
    const auto work = [&](int worker) {
      for (size_t i = next++; i < order.size(); i = next++) body(worker, order[i]);
    };
    absl::BlockingCounter others(workers_ - 1);
    for (int worker = 1; worker < workers_; ++worker) {
      pool_->Schedule([&work, &others, worker] {
        work(worker);
        others.DecrementCount();
      });
    }
    work(0);
    others.Wait();
  }

 private:
  std::vector<int64_t> weights_;
  tensorflow::thread::ThreadPool* pool_;
  int workers_;
};

// A view of a tensor's elements.
template <class T>
Span<const T> View(const tensorflow::Tensor& tensor) {
  return Span<const T>(tensor.flat<T>().data(), tensor.NumElements());
}

// Eager calls skip shape functions, so kernels check what they index with.
inline absl::Status CheckVector(const char* name, const tensorflow::Tensor& tensor, int64_t length = -1) {
  if (tensor.dims() != 1 || (length >= 0 && tensor.NumElements() != length)) {
    return absl::InvalidArgumentError(absl::StrCat("`", name, "` must be a vector",
                                                   length >= 0 ? absl::StrCat(" of ", length, " elements") : std::string(),
                                                   ". Received: shape=", tensor.shape().DebugString()));
  }
  return absl::OkStatus();
}

inline absl::Status CheckScalar(const char* name, const tensorflow::Tensor& tensor) {
  if (tensor.dims() == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("`", name, "` must be a scalar. Received: shape=", tensor.shape().DebugString()));
}

// `splits` must rise from 0 to `total`: segment i is [splits[i], splits[i + 1]).
inline absl::Status CheckSplits(const char* name, const tensorflow::Tensor& tensor, int64_t segments, int64_t total) {
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
          absl::StrCat("`", name, "` must not fall. Received: ", splits[i], " followed by ", splits[i + 1], " at segment ", i));
    }
  }
  return absl::OkStatus();
}

inline absl::Status CheckSizes(Span<const int64_t> sizes) {
  for (size_t i = 0; i < sizes.size; ++i) {
    if (sizes[i] < 0 || sizes[i] > kMaxSize) {
      return absl::InvalidArgumentError(
          absl::StrCat("a segment must have 0 to ", kMaxSize, " elements. Received: size=", sizes[i], " at segment ", i));
    }
  }
  return absl::OkStatus();
}

// `counts[i]` places of `sizes[i]` each.
inline absl::Status CheckCounts(Span<const int64_t> counts, Span<const int64_t> sizes) {
  absl::Status status = CheckSizes(sizes);
  if (!status.ok()) return status;
  for (size_t i = 0; i < sizes.size; ++i) {
    if (counts[i] < 0 || counts[i] > sizes[i]) {
      return absl::InvalidArgumentError(
          absl::StrCat("a segment keeps 0 to size places. Received: count=", counts[i], ", size=", sizes[i], " at segment ", i));
    }
  }
  return absl::OkStatus();
}

// Empty when `indices` are a support of `size` places; otherwise what is wrong with them.
inline std::string WrongIndex(Span<const int32_t> indices, int64_t size) {
  if (IsSupport(indices, size)) return "";
  int64_t previous = -1;
  for (int32_t place : indices) {
    if (place <= previous || place >= size) {
      return absl::StrCat("the places of a segment must ascend strictly in [0, ", size, "). Received: ", place, " after ", previous);
    }
    previous = place;
  }
  return "";
}

inline std::vector<int64_t> Lengths(Span<const int64_t> splits) {
  std::vector<int64_t> lengths(splits.size - 1);
  for (size_t i = 0; i < lengths.size(); ++i) lengths[i] = splits[i + 1] - splits[i];
  return lengths;
}

// The first error of a parallel loop.
class SharedStatus {
 public:
  void Update(const absl::Status& status) {
    if (status.ok()) return;
    absl::MutexLock lock(&mutex_);
    status_.Update(status);
  }
  absl::Status Get() {
    absl::MutexLock lock(&mutex_);
    return status_;
  }

 private:
  absl::Mutex mutex_;
  absl::Status status_;
};

constexpr int64_t kScalar = -2, kAnyLength = -1;

// Reads a vector or scalar input of int64.
inline absl::Status ReadInt64(tensorflow::OpKernelContext* context, const char* name, int64_t length, Span<const int64_t>* view) {
  const tensorflow::Tensor* tensor;
  absl::Status status = context->input(name, &tensor);
  if (status.ok()) status = length == kScalar ? CheckScalar(name, *tensor) : CheckVector(name, *tensor, length);
  if (status.ok()) *view = View<int64_t>(*tensor);
  return status;
}

// The inputs of a decoder: the codes of all segments, and how many places or values each of them holds.
struct Codes {
  Span<const uint8_t> bytes;
  Span<const int64_t> ends, counts;

  // `segments`: their number where sizes tell it; the caller compares counts with these.
  absl::Status Read(tensorflow::OpKernelContext* context, int64_t segments = kAnyLength) {
    const tensorflow::Tensor *code, *splits;
    absl::Status status = context->input("code", &code);
    if (status.ok()) status = context->input("code_splits", &splits);
    if (status.ok()) status = CheckVector("code", *code);
    if (status.ok()) status = ReadInt64(context, "counts", segments, &counts);
    if (status.ok()) status = CheckSplits("code_splits", *splits, static_cast<int64_t>(counts.size), code->NumElements());
    if (!status.ok()) return status;
    bytes = View<uint8_t>(*code);
    ends = View<int64_t>(*splits);
    for (int64_t count : counts) {
      if (segments != kAnyLength) break;
      if (count < 0 || count > kMaxSize) {
        return absl::InvalidArgumentError(absl::StrCat("`counts` must be in [0, ", kMaxSize, "]. Received: ", count));
      }
    }
    return status;
  }

  Span<const uint8_t> Of(int64_t segment) const { return bytes.subspan(ends[segment], ends[segment + 1] - ends[segment]); }
};

// `kind`: "index" or "value".
inline absl::Status DamagedCode(const char* kind, int64_t segment, const Error& error) {
  if (error.ok()) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat("the ", kind, " code of segment ", segment, " is damaged: ", error.name, " at byte ", error.position, " of it"));
}

// Two outputs: the codes of all segments, each lying at `start(segment)`.
template <class Start>
absl::Status OutputCodes(tensorflow::OpKernelContext* context, const std::string& code_name, const std::string& splits_name,
                         const std::vector<int64_t>& lengths, Start start) {
  tensorflow::Tensor *splits, *code;
  const int64_t n = static_cast<int64_t>(lengths.size());
  absl::Status status = context->allocate_output(splits_name, {n + 1}, &splits);
  if (!status.ok()) return status;
  auto ends = splits->vec<int64_t>();
  ends(0) = 0;
  for (int64_t i = 0; i < n; ++i) ends(i + 1) = ends(i) + lengths[i];
  status = context->allocate_output(code_name, {ends(n)}, &code);
  if (!status.ok()) return status;
  for (int64_t i = 0; i < n; ++i) {
    if (lengths[i] > 0) std::memcpy(code->flat<uint8_t>().data() + ends(i), start(i), lengths[i]);
  }
  return absl::OkStatus();
}

}  // namespace deepreduce

#endif  // DEEPREDUCE_KERNELS_SEGMENT_LOOP_H_
