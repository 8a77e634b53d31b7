// Selection: adds a gradient to its residual and keeps some of the places.
//
// "acc" below is residual + gradient, kept within the finite floats, or the gradient alone where `residual` is null. All functions leave
// acc in the residual, so that a later commit only subtracts what was sent. Magnitudes are compared as the integers of their float32 bits
// without the sign; that orders NaN above infinity above all finite numbers.
#ifndef DEEPREDUCE_LIB_SELECT_SELECT_H_
#define DEEPREDUCE_LIB_SELECT_SELECT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "deepreduce_tf/cc/lib/bits/span.h"

namespace deepreduce {

// Memory that one thread reuses from segment to segment.
struct SelectScratch {
  // The candidates of a selection; not initialised beyond them.
  std::unique_ptr<int32_t[]> indices;
  std::unique_ptr<float[]> values;
  size_t room = 0;
  std::vector<uint32_t> sample;
  std::vector<uint32_t> bin;

  // Makes room for `needed` candidates and keeps the first `used`.
  void Reserve(size_t needed, size_t used);
};

// Leaves acc in the residual.
void Accumulate(float* residual, Span<const float> gradient);

// The `count` places of largest |acc|, ascending; among equals the lower ones. Exact. 0 <= count <= gradient.size.
void SelectTopK(float* residual, Span<const float> gradient, int64_t count, SelectScratch* scratch, int32_t* indices, float* values);

// All places with |acc| >= threshold, ascending, into scratch->indices and ->values; returns how many.
size_t SelectThreshold(float* residual, Span<const float> gradient, float threshold, SelectScratch* scratch);

// The values of acc at a given support.
void SelectSupport(float* residual, Span<const float> gradient, Span<const int32_t> support, float* values);

}  // namespace deepreduce

#endif  // DEEPREDUCE_LIB_SELECT_SELECT_H_
