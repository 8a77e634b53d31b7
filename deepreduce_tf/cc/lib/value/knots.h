// Where a descending curve is cut into pieces (Xu et al., "DeepReduce", NeurIPS 2021).
#ifndef DEEPREDUCE_LIB_VALUE_KNOTS_H_
#define DEEPREDUCE_LIB_VALUE_KNOTS_H_

#include <cstddef>

#include "deepreduce_tf/cc/lib/bits/span.h"

namespace deepreduce {

constexpr int kMaxPieces = 64;

// Where each piece of a curve ends, ascending; the last one at the end of the curve.
struct Knots {
  int pieces = 0;
  size_t offsets[kMaxPieces];
};

// One by one at the point furthest from the chord of a piece. `pieces` is how many, 0 for ceil(sqrt(2 M / error)), where M is the
// furthest distance from the chord of the whole curve and error a tenth of its root mean square. Fewer where a piece would have less
// than four points for each of `coefficients`, or where all chords lie on the curve.
Knots FindKnots(Span<const float> curve, int coefficients, int pieces);

}  // namespace deepreduce

#endif  // DEEPREDUCE_LIB_VALUE_KNOTS_H_
