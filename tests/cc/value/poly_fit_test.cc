// PolyFit and DoubleExpFit: their errors, when they fall back, their bytes, and what they refuse.
#include <algorithm>
#include <string>

#include "deepreduce_tf/cc/lib/bits/all_finite.h"
#include "deepreduce_tf/cc/lib/bits/bit_stream.h"
#include "deepreduce_tf/cc/lib/bits/float_bits.h"
#include "deepreduce_tf/cc/lib/bits/raw_indices.h"
#include "deepreduce_tf/cc/lib/value/descending_order.h"
#include "deepreduce_tf/cc/lib/value/knots.h"
#include "tests/cc/check.h"
#include "tests/cc/refuses.h"
#include "tests/cc/samples.h"

namespace deepreduce::testing {
namespace {

enum Kind { kRaw, kPolynomial, kDoubleExponential, kZeros };

struct Head {
  int kind;
  bool negative;
  size_t length;
};

ValueOptions Options(int degree, int pieces = 0) {
  ValueOptions options;
  options.degree = degree;
  options.pieces = pieces;
  return options;
}

Bytes Code(int degree, const std::vector<Head>& heads, const Values& numbers, const Support& places) {
  const int width = IndexWidth(static_cast<int64_t>(places.size()));
  Bytes code(1 + 8 * heads.size() + 4 * numbers.size() + 4 * places.size() + kSlack);
  code[0] = static_cast<uint8_t>(degree);
  BitWriter writer(code.data() + 1);
  for (const Head& head : heads) {
    writer.Put(static_cast<uint64_t>(head.kind | head.negative << 2) | (head.length - 1) << 3, 3 + width);
  }
  uint8_t* next = writer.Finish();
  for (float number : numbers) {
    StoreFloat(number, next);
    next += 4;
  }
  BitWriter fields(next);
  for (int32_t place : places) fields.Put(static_cast<uint64_t>(place), width);
  code.resize(static_cast<size_t>(fields.Finish() - code.data()));
  return code;
}

// The heads of a code; none of a raw one.
std::vector<Head> HeadsOf(const Bytes& code, size_t values) {
  std::vector<Head> heads;
  if (code.size() == 4 * values) return heads;
  const int width = IndexWidth(static_cast<int64_t>(values));
  BitReader reader(Span<const uint8_t>(code.data(), code.size()), 8);
  for (size_t end = 0; end < values; end += heads.back().length) {
    const uint64_t head = reader.Peek();
    heads.push_back({static_cast<int>(head & 3), (head >> 2 & 1) != 0, static_cast<size_t>(head >> 3 & ((1u << width) - 1)) + 1});
    reader.Skip(static_cast<uint64_t>(3 + width));
  }
  return heads;
}

double Square(double x) { return x * x; }

// The relative error, after checking that the code decodes to what its encoder says, that signs hold and that the error shrinks.
double ErrorOf(const ValueCodec& codec, const ValueOptions& options, const Values& values, std::vector<Head>* heads = nullptr) {
  Values seen, decoded(values.size());
  const Bytes code = Encode(codec, options, values, &seen);
  CHECK(code.size() <= 4 * values.size());
  CHECK(Decode(codec, options, code, &decoded).ok());
  CHECK(std::memcmp(seen.data(), decoded.data(), 4 * seen.size()) == 0);
  if (heads != nullptr) *heads = HeadsOf(code, values.size());
  double error = 0, norm = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const bool zero = code.size() < 4 * values.size() && MagnitudeBits(values[i]) < kSmallestNormalBits;
    CHECK(std::isfinite(decoded[i]));
    CHECK(zero ? BitsOf(decoded[i]) == 0 : std::signbit(decoded[i]) == std::signbit(values[i]));
    error += Square(static_cast<double>(values[i]) - static_cast<double>(decoded[i]));
    norm += Square(static_cast<double>(values[i]));
  }
  CHECK(error < norm || norm == 0 || MaxMagnitudeBits(values) < kSmallestNormalBits);
  return norm == 0 ? 0 : std::sqrt(error / norm);
}

Values Of(size_t n, double (*f)(double x)) {
  Values values(n);
  for (size_t i = 0; i < n; ++i) values[i] = static_cast<float>(f(static_cast<double>(i) / static_cast<double>(n - 1)));
  return values;
}

// The larger half of normal values, as TopK keeps them.
Values Kept(size_t n, uint64_t seed) {
  Values values = NormalValues(10 * n, seed);
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(n), values.end(),
                   [](float a, float b) { return std::fabs(a) > std::fabs(b); });
  values.resize(n);
  return values;
}

TEST("Values that TopK keeps come back within 1 % by PolyFit and within 5 % by DoubleExpFit, in half the bytes") {
  for (size_t n : {400, 3000, 20000}) {
    const Values values = Kept(n, 3);
    Values decoded;
    CHECK(ErrorOf(kPolyFit, Options(5), values) < 0.01);
    CHECK(ErrorOf(kDoubleExpFit, Options(5), values) < 0.05);
    for (const ValueCodec* codec : {&kPolyFit, &kDoubleExpFit}) CHECK(Encode(*codec, Options(5), values, &decoded).size() < 2 * n);
  }
}

TEST("More pieces and higher degrees mean smaller errors") {
  const Values values = Kept(5000, 4);
  double before = 1;
  for (int pieces : {1, 2, 4, 16, 64}) {
    const double error = ErrorOf(kPolyFit, Options(5, pieces), values);
    CHECK(error < before);
    before = error;
  }
  before = 1;
  for (int degree : {1, 2, 4, 8, 15}) {
    const double error = ErrorOf(kPolyFit, Options(degree, 1), values);
    CHECK(error < before);
    before = error;
  }
}

TEST("Positive and negative values lie in pieces of their own, zeros in one without numbers") {
  Values values = Kept(600, 5);
  for (size_t i = 0; i < 600; i += 3) values[i] = i % 2 == 0 ? 0.0f : -1e-40f;
  std::vector<Head> heads;
  CHECK(ErrorOf(kPolyFit, Options(5, 2), values, &heads) < 0.02);
  CHECK(heads.size() == 5 && heads.back().kind == kZeros && heads.back().length == 200);
  CHECK(!heads[0].negative && !heads[1].negative && heads[2].negative && heads[3].negative);
  CHECK(heads[0].length + heads[1].length ==
        static_cast<size_t>(std::count_if(values.begin(), values.end(), [](float v) { return v > 0; })));
}

TEST("Curves that no double exponential fits fall back to polynomials, short pieces to raw numbers") {
  std::vector<Head> heads;
  const auto kinds = [&](const Values& values) {
    const double error = ErrorOf(kDoubleExpFit, Options(5), values, &heads);
    std::string names;
    for (const Head& head : heads) names += "RPDZ"[head.kind];
    return error < 1e-6 ? names : "error";
  };
  CHECK(kinds(Of(100, [](double) { return 2.5; })) == "P");
  CHECK(kinds(Of(100, [](double) { return -2.5; })) == "P");
  CHECK(kinds(Of(100, [](double x) { return x < 0.5 ? -2.5 : 2.5; })) == "PP");
  CHECK(kinds(Of(100, [](double x) { return 1 + x * x; })) == "PP");
  const std::string line = kinds(Of(100, [](double x) { return 1 + x; }));
  CHECK(line == "P" || line == "D");
  const std::string two = kinds(Of(100, [](double x) { return x < 0.03 ? -1 - x : 5.0; }));
  CHECK(two == "PR");
  CHECK(ErrorOf(kDoubleExpFit, Options(5), Of(300, [](double x) { return std::exp(-4 * x); }), &heads) < 1e-3);
  CHECK(ErrorOf(kDoubleExpFit, Options(5), Of(300, [](double x) { return 3 * std::exp(-20 * x) + std::exp(-x); }), &heads) < 1e-3);
  CHECK(heads.size() == 1 && heads[0].kind == kDoubleExponential);
}

TEST("Singular, tied, alternating, huge and small values are coded within their norm") {
  for (const ValueCodec* codec : {&kPolyFit, &kDoubleExpFit}) {
    for (size_t n : {1, 2, 3, 6, 7, 12, 24, 100, 3000}) {
      for (double scale : {1e-37, 1.2e-38, 1.0, 1e38, 3.4e38}) {
        Values values(n), ties(n), pair(n, static_cast<float>(scale)), spread(n);
        for (size_t i = 0; i < n; ++i) {
          const double x = static_cast<double>(i + 1) / static_cast<double>(n);
          values[i] = static_cast<float>(scale * (i % 2 == 0 ? x : -x));
          ties[i] = static_cast<float>(scale * static_cast<double>(i % 3 + 1) / 3);
          spread[i] = static_cast<float>(3e38 * std::exp2(-250 * x));
        }
        pair[n / 2] = static_cast<float>(-scale);
        for (const Values& each : {values, ties, pair, spread}) {
          for (int degree : {1, 5, 15}) ErrorOf(*codec, Options(degree), each);
        }
        ErrorOf(*codec, Options(5, 64), values);
      }
    }
  }
}

TEST("The order falls by magnitude, equals by index, and is the same for few and for many values") {
  for (size_t n : {5, 2047, 2048, 30000}) {
    Values values(n);
    for (size_t i = 0; i < n; ++i) values[i] = static_cast<float>(static_cast<int>(RandomBits(1, i) % 64) - 32) * 0.25f;
    std::vector<size_t> expected(n);
    std::iota(expected.begin(), expected.end(), size_t{0});
    const auto part = [&](size_t i) { return values[i] > 0 ? 0 : values[i] < 0 ? 1 : 2; };
    std::stable_sort(expected.begin(), expected.end(), [&](size_t a, size_t b) {
      return part(a) != part(b) ? part(a) < part(b) : std::fabs(values[a]) > std::fabs(values[b]);
    });
    DescendingOrder order;
    CHECK(order.Sort(values));
    for (size_t i = 0; i < n; ++i) {
      CHECK(order.Index(i) == expected[i]);
      CHECK(part(expected[i]) == 2 || order.Magnitude(i) == std::fabs(values[expected[i]]));
    }
    CHECK(order.positive() == static_cast<size_t>(std::count_if(values.begin(), values.end(), [](float v) { return v > 0; })));
    CHECK(order.negative() == static_cast<size_t>(std::count_if(values.begin(), values.end(), [](float v) { return v < 0; })));
  }
}

TEST("A knot is the point furthest from the chord, and pieces keep four values for each coefficient") {
  Values corner(1000);
  for (size_t i = 0; i < 1000; ++i)
    corner[i] = i < 100 ? 1000.0f - 9.0f * static_cast<float>(i) : 100.0f - 0.1f * static_cast<float>(i - 100);
  const Knots knots = FindKnots(corner, 6, 2);
  CHECK(knots.pieces == 2 && knots.ends[0] == 100 && knots.ends[1] == 1000);
  CHECK(FindKnots(corner, 6, 64).pieces <= 1000 / 24);
  Values constant(1000, 3.0f);
  CHECK(FindKnots(constant, 6, 64).pieces == 1);
  CHECK(FindKnots(Span<const float>(constant.data(), 1), 6, 64).pieces == 1);
  CHECK(FindKnots(Span<const float>(corner.data(), 47), 6, 2).pieces == 1);
}

TEST("Both write the bytes of the format page, and read other pieces of the same values") {
  const Values values = {2, -1, 8, 6, 0, 4, 0, 10};
  const Support places = {4, 5, 1, 2, 6, 3, 7, 0};
  const Bytes code = Code(1, {{kPolynomial, false, 5}, {kRaw, true, 1}, {kZeros, false, 2}}, {6, -4, 1}, places);
  CHECK(code == (Bytes{0x01, 0x21, 0xb1, 0x00, 0x00, 0x00, 0xc0, 0x40, 0x00, 0x00, 0x80, 0xc0, 0x00, 0x00, 0x80, 0x3f, 0x6c, 0xe4, 0x1d}));
  Values decoded(8);
  for (const ValueCodec* codec : {&kPolyFit, &kDoubleExpFit}) {
    CHECK(Decode(*codec, {}, code, &decoded).ok() && decoded == values);
    CHECK(Decode(*codec, {},
                 Code(1, {{kPolynomial, false, 4}, {kRaw, false, 1}, {kRaw, true, 1}, {kZeros, false, 2}}, {7, -3, 2, 1}, places), &decoded)
              .ok());
    CHECK(decoded == values);
  }
}

TEST("A polynomial that leaves its sign or the finite floats is brought back") {
  const Support places = {0, 1, 2, 3, 4, 5, 6, 7};
  Values decoded(8);
  CHECK(Decode(kPolyFit, {}, Code(1, {{kPolynomial, true, 8}}, {0, -3e38f}, places), &decoded).ok());
  CHECK(decoded[0] == -3e38f && decoded[7] == -0x1p-126f);
  CHECK(Decode(kPolyFit, {}, Code(1, {{kPolynomial, false, 8}}, {3e38f, 3e38f}, places), &decoded).ok());
  CHECK(decoded[7] == 0x1.fffffep127f && AllFinite(decoded));
  CHECK(Decode(kDoubleExpFit, {}, Code(5, {{kDoubleExponential, false, 8}}, {3e38f, 200, -3e38f, 200}, places), &decoded).ok());
  CHECK(decoded[3] == 0x1p-126f);
  CHECK(Decode(kDoubleExpFit, {}, Code(5, {{kDoubleExponential, true, 8}}, {3e38f, 200, 3e38f, -200}, places), &decoded).ok());
  CHECK(decoded[7] == -0x1.fffffep127f && AllFinite(decoded));
}

TEST("Both refuse heads, numbers and places that no encoder writes") {
  const Support places = {4, 5, 1, 2, 6, 3, 7, 0};
  const auto with = [&](const std::vector<Head>& heads, const Values& numbers) { return Code(1, heads, numbers, places); };
  const std::vector<Head> good = {{kPolynomial, false, 5}, {kRaw, true, 1}, {kZeros, false, 2}};
  for (const ValueCodec* codec : {&kPolyFit, &kDoubleExpFit}) {
    CHECK(Refuses(*codec, {}, 8, {}, "fit: empty code"));
    for (int degree : {0, 16, 32, 255}) CHECK(Refuses(*codec, {}, 8, Code(degree, good, {6, -4, 1}, places), "fit: unknown degree"));
    CHECK(Refuses(*codec, {}, 8, with({{kZeros, true, 8}}, {}), "fit: zeros with a sign"));
    const char* order = "fit: pieces out of order";
    CHECK(Refuses(*codec, {}, 8, with({{kRaw, true, 1}, {kRaw, false, 1}, {kZeros, false, 6}}, {1, 1}), order));
    CHECK(Refuses(*codec, {}, 8, with({{kZeros, false, 6}, {kRaw, false, 2}}, {1, 1}), order));
    CHECK(Refuses(*codec, {}, 8, with({{kZeros, false, 6}, {kZeros, false, 2}}, {}), order));
    CHECK(
        Refuses(*codec, {}, 8, with({{kPolynomial, false, 5}, {kZeros, false, 4}}, {6, -4}), "fit: pieces of more values than there are"));
    CHECK(Refuses(*codec, {}, 8, with({{kPolynomial, false, 1}, {kZeros, false, 7}}, {6, -4}), "fit: fitted piece of too few values"));
    const char* range = "fit: numbers of a piece out of range";
    for (float wrong : {NAN, INFINITY, -INFINITY, 1e-40f, -1e-40f}) CHECK(Refuses(*codec, {}, 8, with(good, {6, wrong, 1}), range));
    for (float wrong : {NAN, INFINITY, 1e-40f, -1.0f, 0.0f, -0.0f}) CHECK(Refuses(*codec, {}, 8, with(good, {6, -4, wrong}), range));
    CHECK(Refuses(*codec, {}, 8, with(good, {6, -4}), "code ends early"));
    CHECK(Refuses(*codec, {}, 8, with(good, {6, -4, 1, 1}), "bytes after the end of the code"));
    CHECK(Refuses(*codec, {}, 8, Code(1, good, {6, -4, 1}, {4, 5, 1, 2, 6, 3, 7, 7}), "fit: places are no permutation"));
    Bytes padded = with(good, {6, -4, 1});
    padded[3] |= 0x80;
    CHECK(Refuses(*codec, {}, 8, padded, "padding bits are not zero"));
  }
  const std::vector<Head> exponential = {{kDoubleExponential, false, 8}};
  CHECK(Refuses(kPolyFit, {}, 8, with(exponential, {4, -3, 1, -0.5f}), "fit: unknown kind of piece"));
  CHECK(Refuses(kDoubleExpFit, {}, 8, Code(8, exponential, {4, -3, 1, -0.5f}, places), "fit: fitted piece of too few values"));
  for (float rate : {200.00002f, -201.0f, NAN, 1e-40f}) {
    CHECK(Refuses(kDoubleExpFit, {}, 8, with(exponential, {4, rate, 1, -0.5f}), "fit: numbers of a piece out of range"));
    CHECK(Refuses(kDoubleExpFit, {}, 8, with(exponential, {4, -3, 1, rate}), "fit: numbers of a piece out of range"));
  }
}

}  // namespace
}  // namespace deepreduce::testing
