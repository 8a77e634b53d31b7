// A falling curve of positive and of negative values, fitted piece by piece: docs/format/value_codes.md, "PolyFit".
#ifndef DEEPREDUCE_LIB_VALUE_CURVE_PIECES_H_
#define DEEPREDUCE_LIB_VALUE_CURVE_PIECES_H_

#include <cstddef>
#include <cstdint>

#include "deepreduce_tf/cc/lib/bits/span.h"
#include "deepreduce_tf/cc/lib/value/knots.h"
#include "deepreduce_tf/cc/lib/value/polynomial.h"

namespace deepreduce {

enum class Fit : uint8_t { kRaw, kPolynomial, kDoubleExponential, kZeros };

struct Piece {
  Fit fit = Fit::kRaw;
  bool negative = false;
  size_t begin = 0;
  size_t length = 0;

  // How many float32 of a code it takes.
  size_t Numbers(int degree) const {
    const size_t numbers[] = {length, static_cast<size_t>(degree) + 1, 4, 0};
    return numbers[static_cast<int>(fit)];
  }
};

struct FittedPiece : Piece {
  float coefficients[kMaxDegree + 1];
};

struct CurveOptions {
  int degree = 5;                   // of polynomials
  int pieces = 0;                   // of positive and of negative values each; 0 by the rule of FindKnots
  bool double_exponential = false;  // one for all positive, one for all negative values, where that is no worse than one polynomial
};

// What a fitted piece decodes to: positive, finite magnitudes.
void EvaluatePiece(const Piece& piece, const float* coefficients, int degree, Span<float> curve);

// Collects the pieces of a curve.
class CurveFitter {
 public:
  // `curve` holds magnitudes; what they decode to goes to `decoded`.
  CurveFitter(const CurveOptions& options, Span<const float> curve, float* decoded) : options_(options), curve_(curve), decoded_(decoded) {}

  // The next `length` points of the curve, which all have one sign, or are zeros.
  void AddSign(bool negative, size_t length);
  void AddZeros(size_t length);

  Span<const FittedPiece> pieces() const { return {pieces_, count_}; }

 private:
  double TryFit(Fit fit, FittedPiece* piece) const;
  bool AddDoubleExponential(FittedPiece piece);
  void Add(const FittedPiece& piece);

  const CurveOptions& options_;
  const Span<const float> curve_;
  float* const decoded_;
  FittedPiece pieces_[2 * kMaxPieces + 1];
  size_t count_ = 0;
  size_t end_ = 0;  // of the pieces so far
};

}  // namespace deepreduce

#endif  // DEEPREDUCE_LIB_VALUE_CURVE_PIECES_H_
