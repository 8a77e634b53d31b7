// TernGrad, ThreeLC and the trits of both: their errors, their bytes, and what they refuse.
#include <algorithm>

#include "deepreduce_tf/cc/lib/bits/float_bits.h"
#include "deepreduce_tf/cc/lib/value/trit_packing.h"
#include "tests/cc/check.h"
#include "tests/cc/refuses.h"
#include "tests/cc/samples.h"

namespace deepreduce::testing {
namespace {

constexpr float kMax = 0x1.fffffep127f;

ValueOptions Options(uint64_t key, bool contraction = false) {
  ValueOptions options;
  options.noise_key = key;
  options.contraction = contraction;
  return options;
}

ValueOptions Times(float multiplier) {
  ValueOptions options;
  options.multiplier = multiplier;
  return options;
}

Bytes Code(float scale, const Bytes& packed) {
  Bytes code(4);
  StoreFloat(scale, code.data());
  code.insert(code.end(), packed.begin(), packed.end());
  return code;
}

struct Norms {
  double error = 0, square = 0, sum = 0, largest = 0;
};

Norms Measure(const Values& values, const Values& decoded) {
  Norms norms;
  for (size_t i = 0; i < values.size(); ++i) {
    const double value = static_cast<double>(values[i]);
    norms.error += std::pow(static_cast<double>(decoded[i]) - value, 2);
    norms.square += value * value;
    norms.sum += std::fabs(value);
    norms.largest = std::max(norms.largest, std::fabs(value));
  }
  return norms;
}

std::vector<Values> Segments() {
  Values heavy = NormalValues(3000, 2), positive = NormalValues(700, 3), negative = positive, large = NormalValues(640, 4);
  for (size_t i = 0; i < heavy.size(); ++i) heavy[i] /= static_cast<float>(Uniform(9, i));
  for (float& value : positive) value = std::fabs(value);
  for (size_t i = 0; i < negative.size(); ++i) negative[i] = -positive[i];
  for (float& value : large) value = std::clamp(value * 0x1p127f * 40, -kMax, kMax);
  return {NormalValues(2000, 1), heavy, positive, negative, large, Values(90, 0.25f), {1.0f, 1e-20f, -1.0f, 0.5f, 0.0f, 1e-42f}};
}

TEST("Trits of every number come back from their bytes") {
  for (size_t n = 1; n <= 45; ++n) {
    Bytes trits(n), packed(PackedTrits(n));
    for (size_t i = 0; i < n; ++i) trits[i] = static_cast<uint8_t>(RandomBits(n, i) % 3);
    PackTrits(trits, packed.data());
    Values expected(n), values(n);
    TritValues(trits, 2.0f, expected.data());
    for (size_t i = 0; i < n; ++i) CHECK(expected[i] == (trits[i] == 0 ? 0.0f : trits[i] == 1 ? 2.0f : -2.0f));
    for (size_t i = 0; i < packed.size(); ++i) {
      CHECK(UnpackTrits(packed[i], 2.0f, {values.data() + 5 * i, std::min<size_t>(5, n - 5 * i)}));
    }
    CHECK(values == expected);
  }
}

TEST("A byte holds trits up to 242, of as many values as there are") {
  Values five(5);
  for (int byte = 0; byte < 256; ++byte) {
    size_t digits = 0;
    for (int rest = byte; rest > 0; rest /= 3) ++digits;
    for (size_t n = 1; n <= 5; ++n) {
      CHECK(UnpackTrits(static_cast<uint8_t>(byte), 1.0f, {five.data(), n}) == (byte < kTritCodes && digits <= n));
      CHECK(UnpackTrits(static_cast<uint8_t>(byte), 0.0f, {five.data(), n}) == (byte == 0));
    }
  }
}

TEST("TernGrad is unbiased, and its variance is max |v|_1 - |v|_2^2") {
  const Values values = {0.9f, -0.31f, 0.05f, -1.0f, 0.7f, 0.33333f, 1e-3f, 0.0f};
  const int kDraws = 40000;
  std::vector<double> sums(values.size());
  double error = 0;
  Values decoded;
  for (int key = 0; key < kDraws; ++key) {
    Encode(kTernGrad, Options(Mix(static_cast<uint64_t>(key))), values, &decoded);
    for (size_t i = 0; i < values.size(); ++i) sums[i] += static_cast<double>(decoded[i]);
    error += Measure(values, decoded).error / kDraws;
  }
  // A result's deviation is at most half: five of it over 200 draws to the root.
  for (size_t i = 0; i < values.size(); ++i) CHECK(std::fabs(sums[i] / kDraws - static_cast<double>(values[i])) < 0.0125);
  const Norms norms = Measure(values, values);
  CHECK(std::fabs(error - (norms.largest * norms.sum - norms.square)) < 0.02);
}

TEST("TernGrad as a contraction errs by 1 - |v|_2^2 / (max |v|_1) of the values, on average") {
  for (const Values& values : Segments()) {
    const Norms norms = Measure(values, values);
    const double kept = norms.square / (norms.largest * norms.sum);
    double ratio = 0;
    for (uint64_t key = 0; key < 200; ++key) {
      Values decoded;
      Encode(kTernGrad, Options(Mix(key), true), values, &decoded);
      ratio += Measure(values, decoded).error / norms.square / 200;
    }
    CHECK(kept > 0 && kept < 1.000001 && std::fabs(ratio - (1 - kept)) < 0.05 * (1 - kept) + 1e-6);
  }
}

TEST("TernGrad draws other noise for another key, and the same for the same") {
  const Values values = NormalValues(1500, 4);
  Values decoded;
  const Bytes code = Encode(kTernGrad, Options(1), values, &decoded);
  CHECK(code.size() == 304);
  CHECK(code == Encode(kTernGrad, Options(1), values, &decoded));
  CHECK(code != Encode(kTernGrad, Options(2), values, &decoded));
}

TEST("TernGrad writes the bytes of the format page where there is nothing to round") {
  Values decoded;
  const Values values = {2, 0, -2, 0, 0, 2, -2};
  CHECK(Encode(kTernGrad, Options(1), values, &decoded) == Code(2, {19, 7}));
  CHECK(decoded == values);
  CHECK(Encode(kTernGrad, Options(1), {0x1p-101f, -0x1p-110f}, &decoded) == Code(0, {0}));
}

TEST("TernGrad refuses lengths, scales and trits that no encoder writes") {
  Values values(6);
  CHECK(Decode(kTernGrad, {}, Code(0x1p-100f, {242, 2}), &values).ok());
  for (const Bytes& packed : {Bytes{}, Bytes{1}, Bytes{1, 1, 0}}) {
    CHECK(Refuses(kTernGrad, {}, 6, Code(1, packed), "TernGrad: wrong length", static_cast<int64_t>(4 + packed.size())));
  }
  CHECK(Refuses(kTernGrad, {}, 6, {}, "TernGrad: wrong length", 0));
  for (float scale : {-1.0f, -0.0f, 0x1p-101f, 1e-40f, INFINITY, NAN}) {
    CHECK(Refuses(kTernGrad, {}, 6, Code(scale, {1, 1}), "TernGrad: scale out of range", 0));
  }
  CHECK(Refuses(kTernGrad, {}, 6, Code(1, {243, 1}), "TernGrad: no five trits", 4));
  CHECK(Refuses(kTernGrad, {}, 6, Code(1, {1, 3}), "TernGrad: no five trits", 5));
  CHECK(Refuses(kTernGrad, {}, 6, Code(0, {0, 1}), "TernGrad: no five trits", 5));
}

TEST("ThreeLC errs on no value by more than itself, and on the largest by less") {
  for (float multiplier : {1.0f, 1.5f, 1.9f, 0x1.fffffep0f}) {
    for (const Values& values : Segments()) {
      Values decoded;
      Encode(kThreeLC, Times(multiplier), values, &decoded);
      for (size_t i = 0; i < values.size(); ++i) {
        const double value = static_cast<double>(values[i]);
        CHECK(std::fabs(static_cast<double>(decoded[i]) - value) <= std::fabs(value));
      }
      const Norms norms = Measure(values, decoded);
      CHECK(norms.error < norms.square);
    }
  }
}

TEST("ThreeLC's runs of zeros come back at every length and place") {
  for (size_t zeros = 0; zeros <= 200; ++zeros) {
    for (size_t before : {0, 1, 4, 5, 636, 640}) {
      for (size_t after : {0, 1, 5}) {
        Values values(before, 1.0f), seen;
        values.resize(before + zeros);
        values.resize(before + zeros + after, -1.0f);
        if (values.empty()) continue;
        Values decoded(values.size());
        const Bytes code = Encode(kThreeLC, {}, values, &seen);
        CHECK(Decode(kThreeLC, {}, code, &decoded).ok());
        CHECK(decoded == values && seen == values);
      }
    }
  }
  Values decoded;
  CHECK(Encode(kThreeLC, {}, Values(70000, 0.0f), &decoded).size() == 4 + 1000);
}

TEST("ThreeLC writes the bytes of the format page") {
  Values values = {0.9f, -2, 0.1f, 1, -1.2f}, decoded;
  values.resize(85);
  values.insert(values.end(), {1.5f, 0});
  CHECK(Encode(kThreeLC, {}, values, &decoded) == Code(2, {0xc3, 0xff, 0xf3, 0x01}));
  // The scale is 3.5, half of it 1.75.
  CHECK(Encode(kThreeLC, Times(1.75f), values, &decoded) == Code(3.5f, {6, 0xff, 0xf4}));
  CHECK(Encode(kThreeLC, Times(1.5f), {kMax, 3e38f, -1e38f}, &decoded) == Code(kMax, {4}));
}

TEST("ThreeLC refuses scales, trits and runs that no encoder writes") {
  const char* kJoined = "ThreeLC: run of zeros that was not joined";
  CHECK(Refuses(kThreeLC, {}, 10, Code(1, {0, 0}), kJoined, 5));
  CHECK(Refuses(kThreeLC, {}, 100, Code(1, {1, 254, 243}), kJoined, 6));
  CHECK(Refuses(kThreeLC, {}, 100, Code(1, {255, 0, 255}), kJoined, 6));
  for (uint8_t run : {243, 250, 255}) CHECK(Refuses(kThreeLC, {}, 9, Code(1, {1, run}), "ThreeLC: run beyond the values", 5));
  CHECK(Refuses(kThreeLC, {}, 10, Code(1, {1}), "ThreeLC: code ends early", 5));
  CHECK(Refuses(kThreeLC, {}, 10, {0, 0, 0}, "ThreeLC: code ends early", 3));
  CHECK(Refuses(kThreeLC, {}, 10, Code(1, {1, 1, 1}), "ThreeLC: bytes after the end of the code", 6));
  CHECK(Refuses(kThreeLC, {}, 6, Code(1, {1, 3}), "ThreeLC: no five trits", 5));
  CHECK(Refuses(kThreeLC, {}, 6, Code(0, {1, 1}), "ThreeLC: no five trits", 4));
  for (float scale : {-1.0f, -0.0f, 0x1p-101f, INFINITY, NAN}) {
    CHECK(Refuses(kThreeLC, {}, 5, Code(scale, {1}), "ThreeLC: scale out of range", 0));
  }
}

}  // namespace
}  // namespace deepreduce::testing
