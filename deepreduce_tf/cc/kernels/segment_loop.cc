#include "deepreduce_tf/cc/kernels/segment_loop.h"

#include <algorithm>
#include <atomic>
#include <numeric>
#include <utility>

#include "absl/synchronization/blocking_counter.h"

namespace deepreduce {

SegmentLoop::SegmentLoop(tensorflow::OpKernelContext* context, std::vector<int64_t> weights) : weights_(std::move(weights)) {
  constexpr int64_t kWorthAThread = 1 << 15;
  const int64_t total = std::accumulate(weights_.begin(), weights_.end(), int64_t{0});
  pool_ = context->device()->tensorflow_cpu_worker_threads()->workers;
  const int64_t useful = std::min<int64_t>({pool_->NumThreads(), static_cast<int64_t>(weights_.size()), total / kWorthAThread});
  workers_ = static_cast<int>(std::max<int64_t>(1, useful));
}

void SegmentLoop::Run(const std::function<void(int worker, int64_t segment)>& body) {
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

void SharedStatus::Update(const absl::Status& status) {
  if (status.ok()) return;
  absl::MutexLock lock(&mutex_);
  status_.Update(status);
}

absl::Status SharedStatus::Get() {
  absl::MutexLock lock(&mutex_);
  return status_;
}

}  // namespace deepreduce
