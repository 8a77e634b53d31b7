#include "deepreduce_tf/cc/lib/value/knots.h"

#include <algorithm>
#include <cmath>

namespace deepreduce {
namespace {

constexpr double kTolerance = 0.1;
constexpr size_t kPointsPerCoefficient = 4;

struct Furthest {
  double distance = 0;
  size_t point = 0;
};

// Of the points of [begin, end) from their chord, along the axis of the values: for one chord the order is that of the true distances.
Furthest FindFurthest(Span<const float> curve, size_t begin, size_t end) {
  Furthest furthest;
  const double start = static_cast<double>(curve[begin]);
  const double slope = (static_cast<double>(curve[end - 1]) - start) / static_cast<double>(std::max<size_t>(1, end - 1 - begin));
  for (size_t i = begin + 1; i + 1 < end; ++i) {
    const double distance = std::fabs(static_cast<double>(curve[i]) - start - slope * static_cast<double>(i - begin));
    if (distance > furthest.distance) furthest = {distance, i};
  }
  return furthest;
}

double RootMeanSquare(Span<const float> curve) {
  double sum = 0;
  for (float value : curve) sum += static_cast<double>(value) * static_cast<double>(value);
  return std::sqrt(sum / static_cast<double>(curve.size));
}

int NumberOfPieces(Span<const float> curve, double distance, int coefficients, int pieces) {
  const double wanted = pieces > 0 ? pieces : std::ceil(std::sqrt(2 * distance / (kTolerance * RootMeanSquare(curve))));
  const size_t affordable = curve.size / (kPointsPerCoefficient * static_cast<size_t>(coefficients));
  return static_cast<int>(std::max(1.0, std::min({wanted, static_cast<double>(affordable), static_cast<double>(kMaxPieces)})));
}

}  // namespace

Knots FindKnots(Span<const float> curve, int coefficients, int pieces) {
  Furthest furthest[kMaxPieces] = {FindFurthest(curve, 0, curve.size)};
  const int wanted = NumberOfPieces(curve, furthest[0].distance, coefficients, pieces);
  Knots knots;
  knots.pieces = 1;
  knots.offsets[0] = curve.size;
  while (knots.pieces < wanted) {
    const auto further = [](const Furthest& a, const Furthest& b) { return a.distance < b.distance; };
    const int cut = static_cast<int>(std::max_element(furthest, furthest + knots.pieces, further) - furthest);
    const size_t knot = furthest[cut].point;
    if (furthest[cut].distance == 0) break;
    std::copy_backward(furthest + cut, furthest + knots.pieces, furthest + knots.pieces + 1);
    std::copy_backward(knots.offsets + cut, knots.offsets + knots.pieces, knots.offsets + knots.pieces + 1);
    ++knots.pieces;
    knots.offsets[cut] = knot;
    furthest[cut] = FindFurthest(curve, cut == 0 ? 0 : knots.offsets[cut - 1], knot);
    furthest[cut + 1] = FindFurthest(curve, knot, knots.offsets[cut + 1]);
  }
  return knots;
}

}  // namespace deepreduce
