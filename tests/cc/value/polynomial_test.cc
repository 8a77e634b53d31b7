// Polynomials, double exponentials and exp itself, against what they are defined to be.
#include "deepreduce_tf/cc/lib/value/polynomial.h"

#include "deepreduce_tf/cc/lib/value/double_exponential.h"
#include "tests/cc/check.h"
#include "tests/cc/samples.h"

namespace deepreduce::testing {
namespace {

double RelativeError(const Values& a, const Values& b) {
  double error = 0, norm = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    error += std::pow(static_cast<double>(a[i]) - static_cast<double>(b[i]), 2);
    norm += std::pow(static_cast<double>(a[i]), 2);
  }
  return std::sqrt(error / norm);
}

Values PolynomialThrough(const Values& curve, int degree) {
  double exact[kMaxDegree + 1];
  FitPolynomial(curve, degree, exact);
  float coefficients[kMaxDegree + 1];
  for (int k = 0; k <= degree; ++k) coefficients[k] = static_cast<float>(exact[k]);
  Values seen(curve.size());
  EvaluatePolynomial(coefficients, degree, seen);
  return seen;
}

TEST("The exponential is within 4e-16 of the C library's, from -200 to 200") {
  for (uint64_t i = 0; i < 200000; ++i) {
    const double x = 400 * Uniform(7, i) - 200;
    const long double exact = expl(static_cast<long double>(x));
    CHECK(std::fabs(static_cast<double>((static_cast<long double>(Exponential(x)) - exact) / exact)) < 4e-16);
  }
  for (int k = -288; k <= 288; ++k) {  // near the points where the power of two changes
    for (double off : {-1e-9, 0.0, 1e-9}) {
      const double x = (k + 0.5) * 0.6931471805599453 + off;
      CHECK(std::fabs(Exponential(x) / std::exp(x) - 1) < 6e-16);
    }
  }
  CHECK(Exponential(0.0) == 1 && Exponential(-0.0) == 1 && Exponential(1e-300) == 1);
}

TEST("A polynomial comes back, of every degree and on any number of points from degree + 1 on") {
  for (int degree = 1; degree <= kMaxDegree; ++degree) {
    for (size_t points : {static_cast<size_t>(degree) + 1, static_cast<size_t>(degree) + 2, size_t{40}, size_t{1000}, size_t{100003}}) {
      Values curve(points);
      for (size_t i = 0; i < points; ++i) {
        const double x = 2 * static_cast<double>(i) / static_cast<double>(points - 1) - 1;
        double y = 3;
        for (int k = 1; k <= degree; ++k) y += std::pow(-x, k) / k;
        curve[i] = static_cast<float>(y);
      }
      CHECK(RelativeError(curve, PolynomialThrough(curve, degree)) < 1e-6);
    }
  }
}

TEST("As many coefficients as points pass through all of them") {
  for (int degree = 1; degree <= kMaxDegree; ++degree) {
    Values curve = NormalValues(static_cast<size_t>(degree) + 1, 5);
    for (float& value : curve) value = std::fabs(value) + 0.001f;
    CHECK(RelativeError(curve, PolynomialThrough(curve, degree)) < 1e-5);
  }
}

TEST("What a polynomial leaves is orthogonal to all powers up to its degree: it is the least-squares one") {
  for (int degree = 1; degree <= kMaxDegree; degree += 2) {
    Values curve = NormalValues(777, 9);
    for (float& value : curve) value = std::fabs(value) + 1.0f;
    double coefficients[kMaxDegree + 1];
    FitPolynomial(curve, degree, coefficients);
    const Values seen = PolynomialThrough(curve, degree);
    for (int k = 0; k <= degree; ++k) {
      double sum = 0;
      for (size_t i = 0; i < curve.size(); ++i) {
        const double x = 2 * static_cast<double>(i) / 776 - 1;
        sum += std::pow(x, k) * (static_cast<double>(curve[i]) - static_cast<double>(seen[i]));
      }
      CHECK(std::fabs(sum) < 1e-4);
    }
  }
}

TEST("A double exponential is found where there is one") {
  const double rates[][2] = {{-1, -9}, {-0.5, -30}, {2, -5}, {3, 1}, {0.01, -4}};
  for (const auto& rate : rates) {
    for (size_t points : {200, 5000, 100000}) {
      Values curve(points), seen(points);
      for (size_t i = 0; i < points; ++i) {
        const double x = static_cast<double>(i) / static_cast<double>(points - 1);
        curve[i] = static_cast<float>(0.3 * std::exp(rate[0] * x) + 0.7 * std::exp(rate[1] * x));
      }
      double exact[4];
      float coefficients[4];
      CHECK(FitDoubleExponential(curve, exact));
      for (int k = 0; k < 4; ++k) coefficients[k] = static_cast<float>(exact[k]);
      EvaluateDoubleExponential(coefficients, seen);
      const double step = 30.0 / static_cast<double>(points);  // of the trapezoid rule
      CHECK(RelativeError(curve, seen) < 1e-6 + 0.1 * step * step);
    }
  }
}

TEST("Where the linear systems of a double exponential are singular or its rates complex, there is none") {
  double coefficients[4];
  Values constant(100, 2.5f), two = {2.0f, 1.0f}, line(100), one(100), wave(100);
  for (size_t i = 0; i < 100; ++i) {
    const double x = static_cast<double>(i) / 99;
    line[i] = static_cast<float>(2 - x);
    one[i] = static_cast<float>(std::exp(-3 * x));
    wave[i] = static_cast<float>(std::cos(9 * x));
  }
  CHECK(!FitDoubleExponential(constant, coefficients));
  CHECK(!FitDoubleExponential(wave, coefficients));
  CHECK(!FitDoubleExponential(two, coefficients));
  // Rounding to float32 leaves a little of these that is not singular: they must then be fitted well, or refused.
  for (const Values& curve : {line, one}) {
    if (!FitDoubleExponential(curve, coefficients)) continue;
    Values seen(curve.size());
    const float rounded[4] = {static_cast<float>(coefficients[0]), static_cast<float>(coefficients[1]), static_cast<float>(coefficients[2]),
                              static_cast<float>(coefficients[3])};
    EvaluateDoubleExponential(rounded, seen);
    CHECK(RelativeError(curve, seen) < 1e-3);
  }
}

}  // namespace
}  // namespace deepreduce::testing
