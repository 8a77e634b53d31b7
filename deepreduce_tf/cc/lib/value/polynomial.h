// Least squares of polynomials on evenly spaced points, in the basis that is orthogonal on exactly these points (discrete Chebyshev or
// Gram polynomials): each coefficient is a quotient of two sums, and no system of equations is solved.
#ifndef DEEPREDUCE_LIB_VALUE_POLYNOMIAL_H_
#define DEEPREDUCE_LIB_VALUE_POLYNOMIAL_H_

#include "deepreduce_tf/cc/lib/bits/span.h"

namespace deepreduce {

constexpr int kMaxDegree = 15;

// Both functions take more than `degree` points, at least 2; docs/format/value_codes.md, "PolyFit", has the abscissa and the basis.

// The degree + 1 coefficients of the polynomial nearest to a curve.
void FitPolynomial(Span<const float> curve, int degree, double* coefficients);

// The polynomial at each point, kept positive and finite.
void EvaluatePolynomial(const float* coefficients, int degree, Span<float> curve);

}  // namespace deepreduce

#endif  // DEEPREDUCE_LIB_VALUE_POLYNOMIAL_H_
