#include "deepreduce_tf/cc/lib/value/curve_pieces.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "deepreduce_tf/cc/lib/value/double_exponential.h"

namespace deepreduce {
namespace {

constexpr double kNone = std::numeric_limits<double>::infinity();
// Share of the squared values that a double exponential may miss. It has no knots: without a bound, outliers stay in the residual for
// steps.
constexpr double kMaxError = 0.25;

// Rounds to float32, denormal numbers to zero. False where that would not be finite.
bool RoundCoefficients(const double* exact, size_t n, float* rounded) {
  for (size_t k = 0; k < n; ++k) {
    const double magnitude = std::fabs(exact[k]);
    if (!(magnitude <= static_cast<double>(std::numeric_limits<float>::max()))) return false;
    rounded[k] = magnitude < 0x1p-126 ? 0.0f : static_cast<float>(exact[k]);
  }
  return true;
}

}  // namespace

void EvaluatePiece(const Piece& piece, const float* coefficients, int degree, Span<float> curve) {
  if (piece.fit == Fit::kPolynomial) EvaluatePolynomial(coefficients, degree, curve);
  if (piece.fit == Fit::kDoubleExponential) EvaluateDoubleExponential(coefficients, curve);
}

// The squared error of what a fit decodes to; kNone where there is no such fit, or it would miss too much of the values.
double CurveFitter::TryFit(Fit fit, FittedPiece* piece) const {
  const Span<const float> points = curve_.subspan(piece->begin, piece->length);
  if (points.size <= static_cast<size_t>(options_.degree)) return kNone;
  piece->fit = fit;
  double coefficients[kMaxDegree + 1];
  if (fit == Fit::kPolynomial) FitPolynomial(points, options_.degree, coefficients);
  if (fit == Fit::kDoubleExponential && !FitDoubleExponential(points, coefficients)) return kNone;
  if (!RoundCoefficients(coefficients, piece->Numbers(options_.degree), piece->coefficients)) return kNone;
  const Span<float> seen(decoded_ + piece->begin, piece->length);
  EvaluatePiece(*piece, piece->coefficients, options_.degree, seen);
  double error = 0, norm = 0;
  for (size_t i = 0; i < points.size; ++i) {
    const double y = static_cast<double>(points[i]);
    const double difference = y - static_cast<double>(seen[i]);
    error += difference * difference;
    norm += y * y;
  }
  return error < (fit == Fit::kDoubleExponential ? kMaxError : 1) * norm ? error : kNone;
}

void CurveFitter::Add(const FittedPiece& piece) {
  pieces_[count_++] = piece;
  end_ = piece.begin + piece.length;
}

bool CurveFitter::AddDoubleExponential(FittedPiece piece) {
  const double polynomial = TryFit(Fit::kPolynomial, &piece);
  const double error = TryFit(Fit::kDoubleExponential, &piece);
  if (error == kNone || error > polynomial) return false;
  Add(piece);
  return true;
}

void CurveFitter::AddSign(bool negative, size_t length) {
  if (length == 0) return;
  const size_t begin = end_;
  FittedPiece piece;
  piece.negative = negative;
  piece.begin = begin;
  piece.length = length;
  if (options_.double_exponential && AddDoubleExponential(piece)) return;
  const Knots knots = FindKnots(curve_.subspan(begin, length), options_.degree + 1, options_.pieces);
  for (int i = 0; i < knots.pieces; ++i) {
    piece.begin = end_;
    piece.length = begin + knots.offsets[i] - end_;
    if (TryFit(Fit::kPolynomial, &piece) == kNone) {
      piece.fit = Fit::kRaw;
      std::copy_n(curve_.data + piece.begin, piece.length, decoded_ + piece.begin);
    }
    Add(piece);
  }
}

void CurveFitter::AddZeros(size_t length) {
  if (length == 0) return;
  FittedPiece piece;
  piece.fit = Fit::kZeros;
  piece.begin = end_;
  piece.length = length;
  std::fill_n(decoded_ + piece.begin, length, 0.0f);
  Add(piece);
}

}  // namespace deepreduce
