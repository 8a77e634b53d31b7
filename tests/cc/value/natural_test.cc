// Natural: its error, its bytes, and what it refuses.
#include <algorithm>

#include "deepreduce_tf/cc/lib/bits/float_bits.h"
#include "tests/cc/check.h"
#include "tests/cc/refuses.h"
#include "tests/cc/samples.h"

namespace deepreduce::testing {
namespace {

constexpr float kMax = 0x1.fffffep127f;

ValueOptions Options(uint64_t key) {
  ValueOptions options;
  options.noise_key = Mix(key);
  return options;
}

Values Rounded(const Values& values, uint64_t key = 1) {
  Values decoded;
  Encode(kNatural, Options(key), values, &decoded);
  return decoded;
}

TEST("Natural rounds to one of the two powers around a value, without bias") {
  const Values values = {1.0f, -1.1f, 1.5f, 1.999f, -0.7f, 100.0f, 3e-5f, 0.0f};
  const int kDraws = 40000;
  std::vector<double> sums(values.size());
  for (uint64_t key = 0; key < kDraws; ++key) {
    const Values decoded = Rounded(values, key);
    for (size_t i = 0; i < values.size(); ++i) {
      sums[i] += static_cast<double>(decoded[i]);
      if (values[i] == 0) continue;
      const float ratio = decoded[i] / values[i];
      CHECK(ratio > 0.5f && ratio < 2 && (BitsOf(decoded[i]) & 0x7fffffu) == 0);
    }
  }
  // A result's deviation is at most half of a power below the value: five of it over 200 draws to the root.
  for (size_t i = 0; i < values.size(); ++i) {
    const double value = static_cast<double>(values[i]);
    CHECK(std::fabs(sums[i] / kDraws - value) <= 0.0125 * std::fabs(value));
  }
  CHECK(sums[0] == kDraws);
}

TEST("Natural errs by at most 1/8 of the squares, on average") {
  for (uint64_t seed = 0; seed < 5; ++seed) {
    const Values values = seed == 4 ? Values(20000, 4.0f / 3) : NormalValues(20000, seed);  // the worst: E = (v - a)(b - v)
    const Values decoded = Rounded(values, seed);
    double error = 0, norm = 0;
    for (size_t i = 0; i < values.size(); ++i) {
      error += std::pow(static_cast<double>(decoded[i]) - static_cast<double>(values[i]), 2);
      norm += std::pow(static_cast<double>(values[i]), 2);
    }
    CHECK(error < norm * (seed == 4 ? 0.13 : 0.1) && error > norm * 0.07);
  }
}

TEST("Natural rounds nothing beyond 2^127, and denormal numbers to zero") {
  const Values values = {kMax, -kMax, 0x1p127f, 0x1.8p126f, 2.0f, 1.0f, -1e-40f};
  for (uint64_t key = 0; key < 50; ++key) {
    const Values decoded = Rounded(values, key);
    CHECK(decoded[0] == 0x1p127f && decoded[1] == -0x1p127f && decoded[2] == 0x1p127f && decoded[3] >= 0x1p126f && decoded[4] == 2.0f);
    CHECK(BitsOf(decoded[5]) == 0 && BitsOf(decoded[6]) == 0);
    const Values small = Rounded({0x1p-126f, 0x1.9p-126f, -0x0.ffp-126f, 1e-45f, 0x1p-126f, 0x1p-126f}, key);
    CHECK(small[0] == 0x1p-126f && small[1] >= 0x1p-126f && BitsOf(small[2]) == 0 && BitsOf(small[3]) == 0);
  }
}

TEST("Natural counts as zero what is 2^-126 of the largest or less, and not what is more") {
  const Values decoded = Rounded({8.0f, 0x1p-123f, 0x1p-124f, -0x1p-123f, 0x1.8p-126f, 0.0f});
  CHECK(decoded == (Values{8.0f, 0x1p-123f, 0.0f, -0x1p-123f, 0.0f, 0.0f}));
}

TEST("Natural's levels are as wide as the range of exponents needs") {
  for (int range = 0; range <= 126; ++range) {
    for (bool zero : {false, true}) {
      Values values, decoded;
      for (int e = 0; e <= range; ++e) values.push_back(std::ldexp(e % 2 == 0 ? 1.0f : -1.0f, e - 60));
      values.resize(200, zero ? 0.0f : 0x1p-60f);
      const Bytes code = Encode(kNatural, {}, values, &decoded);
      int width = 1;
      while ((range + (zero ? 1 : 0)) >> (width - 1) != 0) ++width;
      CHECK(decoded == values);
      CHECK(code.size() == 2 + (200 * static_cast<size_t>(width) + 7) / 8 && code[0] == (width | (zero ? 16 : 0)) && code[1] == 67);
    }
  }
}

TEST("Natural writes the bytes of the format page where there is nothing to round") {
  Values decoded;
  CHECK(Encode(kNatural, {}, {1, -4, 0.25f, 0, -1}, &decoded) == (Bytes{0x14, 125, 0xd3, 0x01, 0x0b}));
  CHECK(Encode(kNatural, {}, {8, -8, -8, 8, 8, 8, 8, -8, 8, 8}, &decoded) == (Bytes{0x01, 130, 0x86, 0x00}));
  CHECK(Encode(kNatural, {}, Values(9, 0.0f), &decoded) == (Bytes{0x11, 0, 0, 0}));
}

TEST("Natural refuses parameters, exponents and levels that no encoder writes") {
  Values values(5);
  CHECK(Decode(kNatural, {}, {0x14, 125, 0xd3, 0x01, 0x0b}, &values).ok());
  for (size_t length : {0, 1})
    CHECK(Refuses(kNatural, {}, 5, Bytes(length, 0x14), "Natural: code ends early", static_cast<int64_t>(length)));
  for (uint8_t parameter : {0x10, 0x19, 0x1f, 0x34, 0x54, 0x94}) {
    CHECK(Refuses(kNatural, {}, 5, {parameter, 125, 0xd3, 0x01, 0x0b}, "Natural: unknown parameter bits", 0));
  }
  CHECK(Refuses(kNatural, {}, 5, {0x14, 125, 0xd3, 0x08, 0x0b}, "Natural: negative zero", 2));
  CHECK(Refuses(kNatural, {}, 5, {0x14, 125, 0xd3, 0x11, 0x0b}, "Natural: zeros flag without a zero", 0));
  CHECK(Refuses(kNatural, {}, 5, {0x14, 125, 0xd3, 0x02, 0x0b}, "Natural: smallest exponent of no value", 1));
  CHECK(Refuses(kNatural, {}, 5, {0x14, 0, 0xd3, 0x01, 0x0b}, "Natural: smallest exponent of no value", 1));
  CHECK(Refuses(kNatural, {}, 5, {0x11, 7, 0}, "Natural: smallest exponent of no value", 1));
  CHECK(Refuses(kNatural, {}, 5, {0x01, 0, 0}, "Natural: smallest exponent of no value", 1));
  CHECK(Refuses(kNatural, {}, 5, {0x14, 251, 0xd3, 0x01, 0x0b}, "Natural: exponent out of range", 1));
  CHECK(Refuses(kNatural, {}, 5, {0x01, 255, 0}, "Natural: exponent out of range", 1));
  CHECK(Refuses(kNatural, {}, 3, {0x08, 1, 0, 127, 0}, "Natural: exponent out of range", 1));
  CHECK(Decode(kNatural, {}, {0x18, 1, 1, 127, 0, 1, 1}, &values).ok());
  CHECK(Refuses(kNatural, {}, 5, {0x15, 125, 0xa3, 0x06, 0x30, 0x01}, "Natural: levels wider than needed", 0));
  CHECK(Refuses(kNatural, {}, 5, {0x02, 125, 0, 0}, "Natural: levels wider than needed", 0));
  CHECK(Refuses(kNatural, {}, 5, {0x14, 125, 0xd3, 0x01, 0x1b}, "padding bits are not zero", 4));
  CHECK(Refuses(kNatural, {}, 5, {0x14, 125, 0xd3, 0x01}, "code ends early", 4));
}

}  // namespace
}  // namespace deepreduce::testing
