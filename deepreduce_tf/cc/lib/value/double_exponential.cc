#include "deepreduce_tf/cc/lib/value/double_exponential.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <initializer_list>

#include "deepreduce_tf/cc/lib/bits/float_bits.h"

namespace deepreduce {
namespace {

constexpr int kLanes = 16;
constexpr int kTerms = 14;
// 1 / n!
constexpr double kTaylor[kTerms] = {
    1.0,        1.0,         1.0 / 2,      1.0 / 6,       1.0 / 24,       1.0 / 120,       1.0 / 720,
    1.0 / 5040, 1.0 / 40320, 1.0 / 362880, 1.0 / 3628800, 1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800};

// Inlined, so that loops over it vectorise.
inline double ExponentialOf(double x) {
  // x = k ln 2 + r with |r| <= ln 2 / 2; the high part of ln 2 has zeros enough at its end for an exact product.
  constexpr double kLog2E = 0x1.71547652b82fep0, kLn2High = 0x1.62e42feep-1, kLn2Low = 0x1.a39ef35793c76p-33;
  const int32_t k = static_cast<int32_t>(x * kLog2E + (x < 0 ? -0.5 : 0.5));
  const double r = x - static_cast<double>(k) * kLn2High - static_cast<double>(k) * kLn2Low;
  double sum = kTaylor[kTerms - 1];
  for (int n = kTerms - 2; n >= 0; --n) sum = sum * r + kTaylor[n];
  const uint64_t bits = static_cast<uint64_t>(k + 1023) << 52;
  double power;
  std::memcpy(&power, &bits, sizeof power);
  return sum * power;
}

// e^(rate x) at kLanes points of a curve from `first` on. Beyond its last one, x may be too large; nobody asks for these.
void Exponentials(double rate, size_t first, double last, double* out) {
  const double start = static_cast<double>(first);
  for (int i = 0; i < kLanes; ++i) out[i] = ExponentialOf(rate * ((start + i) / last));
}

// The sums of a least-squares problem y = p u + q v.
struct Normal {
  double uu = 0, uv = 0, vv = 0, uy = 0, vy = 0;

  void Add(double u, double v, double y) {
    uu += u * u;
    uv += u * v;
    vv += v * v;
    uy += u * y;
    vy += v * y;
  }

  // False when u and v are too nearly parallel to tell p from q, or u is no more than the rounding of numbers whose squares add up to
  // `scale`.
  bool Solve(double scale, double* p, double* q) const {
    constexpr double kParallel = 1e-11, kRounding = 1e-20;
    if (!(uu > kRounding * scale)) return false;
    const double slope = uv / uu;
    const double rest = vv - slope * uv;  // of v, after what it shares with u
    if (!(rest > kParallel * vv)) return false;
    *q = (vy - slope * uy) / rest;
    *p = (uy - *q * uv) / uu;
    return true;
  }
};

// Mean and slope of a sequence over t from -1 to 1: the terms 1 and t of the linear system, which are orthogonal to each other. Taking
// them out of the other two terms and of y first leaves two equations of four.
class Line {
 public:
  void Add(double t, double y) {
    sum_ += y;
    moment_ += t * y;
  }
  void Finish(double points, double squares) {
    sum_ /= points;
    moment_ /= squares;
  }
  double Without(double t, double y) const { return y - sum_ - moment_ * t; }

 private:
  double sum_ = 0, moment_ = 0;
};

// Calls visit(t, y, S, SS) for each point; S and SS are the first and second integral of y by the trapezoid rule.
template <class Visit>
void ForEachIntegral(Span<const float> curve, Visit visit) {
  const double last = static_cast<double>(curve.size) - 1;
  const double half = 0.5 / last;
  double before = static_cast<double>(curve[0]), first = 0, second = 0;
  for (size_t i = 0; i < curve.size; ++i) {
    const double y = static_cast<double>(curve[i]);
    const double grown = i == 0 ? 0 : first + half * (before + y);
    second += half * (first + grown);
    first = grown;
    before = y;
    visit((2 * static_cast<double>(i) - last) / last, y, first, second);
  }
}

// y = -b d SS + (b + d) S + a line.
bool FitRates(Span<const float> curve, double* b, double* d) {
  Line y_line, s_line, ss_line;
  double squares = 0, scale = 0;
  ForEachIntegral(curve, [&](double t, double y, double s, double ss) {
    squares += t * t;
    scale += s * s;
    y_line.Add(t, y);
    s_line.Add(t, s);
    ss_line.Add(t, ss);
  });
  for (Line* line : {&y_line, &s_line, &ss_line}) line->Finish(static_cast<double>(curve.size), squares);
  Normal normal;
  ForEachIntegral(curve, [&](double t, double y, double s, double ss) {
    normal.Add(s_line.Without(t, s), ss_line.Without(t, ss), y_line.Without(t, y));
  });
  double sum, product;
  if (!normal.Solve(scale, &sum, &product)) return false;
  const double discriminant = sum * sum + 4 * product;
  if (!(discriminant > 0)) return false;
  const double root = std::sqrt(discriminant);
  *b = 0.5 * (sum + root);
  *d = 0.5 * (sum - root);
  return std::fabs(*b) <= static_cast<double>(kMaxRate) && std::fabs(*d) <= static_cast<double>(kMaxRate);
}

}  // namespace

double Exponential(double x) { return ExponentialOf(x); }

bool FitDoubleExponential(Span<const float> curve, double coefficients[4]) {
  double b, d;
  if (!FitRates(curve, &b, &d)) return false;
  // The rates travel as float32, so a and c are fitted to those.
  b = static_cast<double>(static_cast<float>(b));
  d = static_cast<double>(static_cast<float>(d));
  const double last = static_cast<double>(curve.size) - 1;
  Normal normal;
  double u[kLanes], v[kLanes];
  for (size_t first = 0; first < curve.size; first += kLanes) {
    Exponentials(b, first, last, u);
    Exponentials(d, first, last, v);
    const size_t n = std::min<size_t>(kLanes, curve.size - first);
    for (size_t i = 0; i < n; ++i) normal.Add(u[i], v[i], static_cast<double>(curve[first + i]));
  }
  coefficients[1] = b;
  coefficients[3] = d;
  return normal.Solve(normal.uu, &coefficients[0], &coefficients[2]);
}

void EvaluateDoubleExponential(const float coefficients[4], Span<float> curve) {
  const double a = static_cast<double>(coefficients[0]), b = static_cast<double>(coefficients[1]);
  const double c = static_cast<double>(coefficients[2]), d = static_cast<double>(coefficients[3]);
  const double last = static_cast<double>(curve.size) - 1;
  double u[kLanes], v[kLanes];
  for (size_t first = 0; first < curve.size; first += kLanes) {
    Exponentials(b, first, last, u);
    Exponentials(d, first, last, v);
    const size_t n = std::min<size_t>(kLanes, curve.size - first);
    for (size_t i = 0; i < n; ++i) curve[first + i] = PositiveNormal(a * u[i] + c * v[i]);
  }
}

}  // namespace deepreduce
