#include "select.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>

#include "collect.h"
#include "random.h"

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

// Appends to the candidates at `found`, growing them block by block; returns the new number.
template <class Pass>
size_t ForEachBlock(size_t n, SelectScratch* scratch, Pass pass) {
  size_t found = 0;
  for (size_t first = 0; first < n; first += kCollectBlock) {
    const size_t length = std::min(kCollectBlock, n - first);
    const size_t needed = found + length + kCollectSlack;
    if (scratch->indices.size() < needed) {
      scratch->indices.resize(needed + needed / 2);
      scratch->values.resize(needed + needed / 2);
    }
    found += pass(first, length, scratch->indices.data() + found, scratch->values.data() + found);
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

// Magnitudes of about one in 64 places of acc.
void Sample(const float* residual, Span<const float> gradient, std::vector<uint32_t>* sample) {
  const size_t runs = std::max<size_t>(128, gradient.size / (64 * kRun));
  const size_t stride = gradient.size / runs;
  sample->clear();
  for (size_t run = 0; run < runs; ++run) {
    const size_t room = stride > kRun ? stride - kRun : 1;
    const size_t first = std::min(run * stride + RandomBits(gradient.size, run) % room, gradient.size - kRun);
    for (size_t i = first; i < first + kRun; ++i) {
      sample->push_back(Magnitude(residual == nullptr ? gradient[i] : residual[i] + gradient[i]));
    }
  }
}

// A magnitude that about `count` of `size` places, and very probably no fewer, reach; 0 when the sample cannot tell. Reorders the sample.
uint32_t Threshold(std::vector<uint32_t>* sample, size_t size, int64_t count, double margin) {
  const double mean = static_cast<double>(count) / size * sample->size();
  const double rank = mean + margin * std::sqrt(mean) + 2;
  if (rank >= sample->size()) return 0;
  const auto nth = sample->begin() + static_cast<ptrdiff_t>(rank);
  std::nth_element(sample->begin(), nth, sample->end(), std::greater<uint32_t>());
  return *nth;
}

// The count-th largest magnitude of the candidates: a histogram of the leading bits leaves few to order.
uint32_t CountthLargest(Span<const float> candidates, int64_t count, std::vector<uint32_t>* bin) {
  constexpr int kShift = 19;
  uint32_t histogram[(0x7fffffffu >> kShift) + 1] = {};
  for (float x : candidates) ++histogram[Magnitude(x) >> kShift];
  uint32_t leading = (0x7fffffffu >> kShift) + 1;
  int64_t above = 0;
  do above += histogram[--leading];
  while (above < count);
  above -= histogram[leading];
  bin->clear();
  for (float x : candidates) {
    if (Magnitude(x) >> kShift == leading) bin->push_back(Magnitude(x));
  }
  const auto nth = bin->begin() + (count - above - 1);
  std::nth_element(bin->begin(), nth, bin->end(), std::greater<uint32_t>());
  return *nth;
}

// Of `found` candidates in the scratch, writes the `count` largest in order.
void KeepLargest(size_t found, int64_t count, SelectScratch* scratch, int32_t* indices, float* values) {
  const Span<const float> candidates(scratch->values.data(), found);
  const uint32_t least = CountthLargest(candidates, count, &scratch->magnitudes);
  int64_t equal = count;  // how many of magnitude `least` are kept: what the larger ones leave
  for (float x : candidates) equal -= Magnitude(x) > least;
  int64_t written = 0;
  for (size_t i = 0; written < count; ++i) {
    const uint32_t magnitude = Magnitude(candidates[i]);
    const bool tie = magnitude == least && equal > 0;
    indices[written] = scratch->indices[i];
    values[written] = candidates[i];
    equal -= tie;
    written += magnitude > least || tie;
  }
}

void KeepAll(const float* acc, size_t size, int32_t* indices, float* values) {
  std::copy(acc, acc + size, values);
  for (size_t i = 0; i < size; ++i) indices[i] = static_cast<int32_t>(i);
}

}  // namespace

bool AllFinite(Span<const float> values) {
  const CollectFunctions& f = BestCollectFunctions();
  for (size_t first = 0; first < values.size; first += kCollectBlock) {
    if (!f.all_finite(values.data + first, std::min(kCollectBlock, values.size - first))) return false;
  }
  return true;
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
    Sample(residual, gradient, &scratch->magnitudes);
    least = Threshold(&scratch->magnitudes, size, count, 5);
  }
  size_t found = residual == nullptr ? Collect(acc, size, least, scratch) : AccumulateAndCollect(residual, gradient, least, scratch);
  if (found < static_cast<size_t>(count)) {  // the sample misled
    found = Collect(acc, size, Threshold(&scratch->magnitudes, size, 2 * count, 20), scratch);
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
