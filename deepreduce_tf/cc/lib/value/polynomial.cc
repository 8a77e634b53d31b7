#include "deepreduce_tf/cc/lib/value/polynomial.h"

#include <algorithm>
#include <numeric>

#include "deepreduce_tf/cc/lib/bits/float_bits.h"

namespace deepreduce {
namespace {

// Points are handled this many at a time, so that loops over them vectorise.
constexpr size_t kLanes = 16;

// p_(k+1) = x p_k - beta[k] p_(k-1) on m points.
struct Recurrence {
  double last;  // m - 1
  double beta[kMaxDegree + 2];

  explicit Recurrence(size_t points) : last(static_cast<double>(points) - 1) {
    const double m = static_cast<double>(points);
    for (int k = 0; k < kMaxDegree + 2; ++k) {
      const double k2 = static_cast<double>(k * k);
      beta[k] = k2 * (m * m - k2) / ((4 * k2 - 1) * (last * last));
    }
  }
  void Abscissa(size_t first, double* x) const {
    const double start = static_cast<double>(first);
    for (int i = 0; i < static_cast<int>(kLanes); ++i) x[i] = (2 * (start + i) - last) / last;
  }
};

}  // namespace

void FitPolynomial(Span<const float> curve, int degree, double* coefficients) {
  const Recurrence recurrence(curve.size);
  double sums[kMaxDegree + 1][kLanes] = {};
  for (size_t first = 0; first < curve.size; first += kLanes) {
    const size_t n = std::min(kLanes, curve.size - first);
    double x[kLanes], y[kLanes] = {}, before[kLanes] = {}, p[kLanes];
    recurrence.Abscissa(first, x);
    std::copy_n(curve.data + first, n, y);
    std::fill_n(p, kLanes, 1.0);
    for (int k = 0; k <= degree; ++k) {
      const double beta = recurrence.beta[k];
      for (size_t i = 0; i < kLanes; ++i) {
        sums[k][i] += y[i] * p[i];
        const double next = x[i] * p[i] - beta * before[i];
        before[i] = p[i];
        p[i] = next;
      }
    }
  }
  double square = static_cast<double>(curve.size);  // of the norm of p_k
  for (int k = 0; k <= degree; ++k) {
    if (k > 0) square *= recurrence.beta[k];
    coefficients[k] = std::accumulate(sums[k], sums[k] + kLanes, 0.0) / square;
  }
}

void EvaluatePolynomial(const float* coefficients, int degree, Span<float> curve) {
  const Recurrence recurrence(curve.size);
  for (size_t first = 0; first < curve.size; first += kLanes) {
    // Clenshaw's recurrence, from the highest coefficient down.
    double x[kLanes], y[kLanes] = {}, above[kLanes] = {};
    recurrence.Abscissa(first, x);
    for (int k = degree; k >= 0; --k) {
      const double coefficient = static_cast<double>(coefficients[k]);
      const double beta = recurrence.beta[k + 1];
      for (size_t i = 0; i < kLanes; ++i) {
        const double here = coefficient + x[i] * y[i] - beta * above[i];
        above[i] = y[i];
        y[i] = here;
      }
    }
    const size_t n = std::min(kLanes, curve.size - first);
    for (size_t i = 0; i < n; ++i) curve[first + i] = PositiveNormal(y[i]);
  }
}

}  // namespace deepreduce
