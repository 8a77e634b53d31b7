// Least squares of y = a e^(b x) + c e^(d x) on evenly spaced points, by an integral equation (Jacquelin, "Régressions et équations
// intégrales", 2009): y is linear in its own first and second integral, so b and d follow from a linear system, then a and c from another.
#ifndef DEEPREDUCE_LIB_VALUE_DOUBLE_EXPONENTIAL_H_
#define DEEPREDUCE_LIB_VALUE_DOUBLE_EXPONENTIAL_H_

#include "deepreduce_tf/cc/lib/bits/span.h"

namespace deepreduce {

// Bound of |b| and |d|: such a curve passes through more than all magnitudes of float32, and no result overflows.
constexpr float kMaxRate = 200;

// a, b, c and d of a curve of at least 2 points, x from 0 to 1. False where there are none: the system is singular, the rates are complex
// or too large.
bool FitDoubleExponential(Span<const float> curve, double coefficients[4]);

// The curve of a, b, c and d, kept positive and finite. |b| and |d| are at most kMaxRate.
void EvaluateDoubleExponential(const float coefficients[4], Span<float> curve);

// e^x by + - * / alone, for |x| <= kMaxRate; the same bits on every CPU, within 4e-16 of the true value.
double Exponential(double x);

}  // namespace deepreduce

#endif  // DEEPREDUCE_LIB_VALUE_DOUBLE_EXPONENTIAL_H_
