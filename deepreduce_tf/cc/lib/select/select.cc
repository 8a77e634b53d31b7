#include "deepreduce_tf/cc/lib/select/select.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <type_traits>
#include <utility>

#include "deepreduce_tf/cc/lib/bits/random.h"
#include "deepreduce_tf/cc/lib/select/collect.h"

namespace deepreduce {
namespace {

// Segments up to this size need no threshold: all their places are candidates.
constexpr size_t kSmall = 1024;
// Places are sampled in runs of one cache line.
constexpr size_t kRun = 16;

uint32_t Magnitude(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  return bits & 0x7fffffffu;
}

// Appends to the candidates block by block; returns their number.
template <class Pass>
size_t ForEachBlock(size_t n, SelectScratch* scratch, Pass pass) {
  size_t found = 0;
  for (size_t first = 0; first < n; first += kCollectBlock) {
    const size_t length = std::min(kCollectBlock, n - first);
    scratch->Reserve(found + length + kCollectSlack, found);
    found += pass(first, length, scratch->indices.get() + found, scratch->values.get() + found);
  }
  return found;
}

// Candidates with a magnitude of at least `least`; the residual takes up the gradient.
size_t AccumulateAndCollect(float* residual, Span<const float> gradient, uint32_t least, SelectScratch* scratch) {
  const CollectFunctions& f = BestCollectFunctions();
  return ForEachBlock(gradient.size, scratch, [&](size_t first, size_t n, int32_t* indices, float* values) {
    return f.accumulate_and_collect(residual + first, gradient.data + first, n, static_cast<int32_t>(first), least, indices, values);
  });
}

size_t Collect(const float* acc, size_t size, uint32_t least, SelectScratch* scratch) {
  const CollectFunctions& f = BestCollectFunctions();
  return ForEachBlock(size, scratch, [&](size_t first, size_t n, int32_t* indices, float* values) {
    return f.collect(acc + first, n, static_cast<int32_t>(first), least, indices, values);
  });
}

// Magnitudes of about one in 128 places of acc.
void Sample(const float* residual, Span<const float> gradient, std::vector<uint32_t>* sample) {
  const size_t runs = std::max<size_t>(96, gradient.size / (128 * kRun));
  const size_t stride = gradient.size / runs;
  sample->resize(runs * kRun);
  uint32_t* out = sample->data();
  for (size_t run = 0; run < runs; ++run, out += kRun) {
    const size_t room = stride > kRun ? stride - kRun : 1;
    const size_t first = std::min(run * stride + RandomBits(gradient.size, run) % room, gradient.size - kRun);
    for (size_t i = 0; i < kRun; ++i) {
      out[i] = Magnitude(residual == nullptr ? gradient[first + i] : residual[first + i] + gradient[first + i]);
    }
  }
}

// The rank-th largest of some magnitudes, and how many of its equals are among the `rank` largest.
struct Ranked {
  uint32_t magnitude;
  int64_t ties;
};

// A histogram of the leading bits leaves few magnitudes to order; they are copied to `bin`.
template <class T>
Ranked RankthLargest(Span<T> all, int64_t rank, std::vector<uint32_t>* bin) {
  constexpr int kShift = 19;
  constexpr uint32_t kBins = (0x7fffffffu >> kShift) + 1;
  const auto magnitude = [&](size_t i) {
    if constexpr (std::is_floating_point_v<T> || std::is_same_v<T, const float>)
      return Magnitude(all[i]);
    else
      return all[i];
  };
  uint32_t histograms[2][kBins] = {};  // two, since neighbours often meet in one bin and would wait for each other
  for (size_t i = 0; i < all.size; ++i) ++histograms[i & 1][magnitude(i) >> kShift];
  uint32_t leading = kBins;
  int64_t above = 0, in_bin = 0;
  do {
    above += in_bin;
    --leading;
    in_bin = static_cast<int64_t>(histograms[0][leading]) + histograms[1][leading];
  } while (above + in_bin < rank);
  bin->resize(in_bin + 1);
  size_t copied = 0;
  for (size_t i = 0; i < all.size; ++i) {
    const uint32_t m = magnitude(i);
    (*bin)[copied] = m;
    copied += m >> kShift == leading;
  }
  const auto nth = bin->begin() + (rank - above - 1);
  std::nth_element(bin->begin(), nth, bin->begin() + in_bin, std::greater<uint32_t>());
  const uint32_t found = *nth;
  const int64_t larger = std::count_if(bin->begin(), nth, [&](uint32_t m) { return m > found; });
  return {found, rank - above - larger};
}

// A magnitude that about `count` of `size` places, and very probably no fewer, reach; 0 when the sample cannot tell.
uint32_t Threshold(Span<const uint32_t> sample, size_t size, int64_t count, double margin, std::vector<uint32_t>* bin) {
  const double mean = static_cast<double>(count) / size * sample.size;
  const double rank = mean + margin * std::sqrt(mean) + 2;
  return rank >= sample.size ? 0 : RankthLargest(sample, static_cast<int64_t>(rank), bin).magnitude;
}

// Of `found` candidates in the scratch, writes the `count` largest in order.
void KeepLargest(size_t found, int64_t count, SelectScratch* scratch, int32_t* indices, float* values) {
  const Span<const float> candidates(scratch->values.get(), found);
  const Ranked least = RankthLargest(candidates, count, &scratch->bin);
  int64_t ties = least.ties, written = 0;
  for (size_t i = 0; written < count; ++i) {
    const uint32_t magnitude = Magnitude(candidates[i]);
    const bool tie = (magnitude == least.magnitude) & (ties > 0);
    indices[written] = scratch->indices[i];
    values[written] = candidates[i];
    ties -= tie;
    written += (magnitude > least.magnitude) | tie;
  }
}

void KeepAll(const float* acc, size_t size, int32_t* indices, float* values) {
  std::copy(acc, acc + size, values);
  for (size_t i = 0; i < size; ++i) indices[i] = static_cast<int32_t>(i);
}

}  // namespace

void SelectScratch::Reserve(size_t needed, size_t used) {
  if (needed <= room) return;
  room = used == 0 ? needed : needed + needed / 2;
  std::unique_ptr<int32_t[]> more_indices(new int32_t[room]);
  std::unique_ptr<float[]> more_values(new float[room]);
  std::copy_n(indices.get(), used, more_indices.get());
  std::copy_n(values.get(), used, more_values.get());
  indices = std::move(more_indices);
  values = std::move(more_values);
}

void Accumulate(float* residual, Span<const float> gradient) {
  if (residual != nullptr) BestCollectFunctions().accumulate(residual, gradient.data, gradient.size);
}

void SelectTopK(float* residual, Span<const float> gradient, int64_t count, SelectScratch* scratch, int32_t* indices, float* values) {
  const size_t size = gradient.size;
  const float* acc = residual == nullptr ? gradient.data : residual;
  if (count == 0 || static_cast<size_t>(count) == size) {
    Accumulate(residual, gradient);
    if (count != 0) KeepAll(acc, size, indices, values);
    return;
  }
  uint32_t least = 0;
  if (size > kSmall) {
    Sample(residual, gradient, &scratch->sample);
    least = Threshold(scratch->sample, size, count, 5, &scratch->bin);
  }
  scratch->Reserve(std::min<size_t>(size, count + count / 4) + kCollectBlock + kCollectSlack, 0);
  size_t found = residual == nullptr ? Collect(acc, size, least, scratch) : AccumulateAndCollect(residual, gradient, least, scratch);
  if (found < static_cast<size_t>(count)) {  // the sample misled
    found = Collect(acc, size, Threshold(scratch->sample, size, 2 * count, 20, &scratch->bin), scratch);
    if (found < static_cast<size_t>(count)) found = Collect(acc, size, 0, scratch);
  }
  KeepLargest(found, count, scratch, indices, values);
}

size_t SelectThreshold(float* residual, Span<const float> gradient, float threshold, SelectScratch* scratch) {
  const uint32_t least = Magnitude(threshold);
  return residual == nullptr ? Collect(gradient.data, gradient.size, least, scratch)
                             : AccumulateAndCollect(residual, gradient, least, scratch);
}

void SelectSupport(float* residual, Span<const float> gradient, Span<const int32_t> support, float* values) {
  Accumulate(residual, gradient);
  const float* acc = residual == nullptr ? gradient.data : residual;
  for (size_t i = 0; i < support.size; ++i) values[i] = acc[support[i]];
}

}  // namespace deepreduce
