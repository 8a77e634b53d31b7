// SketchML: its errors, its bytes, and what it refuses.
#include <algorithm>

#include "deepreduce_tf/cc/lib/bits/float_bits.h"
#include "tests/cc/check.h"
#include "tests/cc/refuses.h"
#include "tests/cc/samples.h"

namespace deepreduce::testing {
namespace {

ValueOptions Options(int bits) {
  ValueOptions options;
  options.bits = bits;
  return options;
}

// Normal, exponential beyond a threshold as TopK leaves them, and with heavy tails.
Values Sample(int kind, size_t n, uint64_t seed) {
  Values values = NormalValues(n, seed);
  for (size_t i = 0; i < n; ++i) {
    const double u = Uniform(seed + 1, i);
    if (kind == 1) values[i] = std::copysign(static_cast<float>(1 - 0.3 * std::log(u)), values[i]);
    if (kind == 2) values[i] = static_cast<float>(static_cast<double>(values[i]) / u);
  }
  return values;
}

struct Result {
  double error;  // of the norm
  double bits;   // per value
};

Result Measure(const ValueCodec& codec, int bits, const Values& values) {
  Values decoded;
  const Bytes code = Encode(codec, Options(bits), values, &decoded);
  double error = 0, norm = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    error += std::pow(static_cast<double>(values[i]) - static_cast<double>(decoded[i]), 2);
    norm += std::pow(static_cast<double>(values[i]), 2);
  }
  return {std::sqrt(error / norm), 8.0 * static_cast<double>(code.size()) / static_cast<double>(values.size())};
}

TEST("SketchML's error is less than the values and falls with the bits") {
  for (int kind : {0, 1, 2}) {
    for (size_t n : {10, 369, 5000, 100000}) {
      double before = 1;
      for (int bits = 2; bits <= 8; ++bits) {
        const Result result = Measure(kSketchML, bits, Sample(kind, n, 5));
        CHECK(result.error <= before);
        before = result.error;
      }
    }
  }
}

TEST("SketchML errs less than LogQuantizer and QSGD of as many bytes or more") {
  for (int kind : {0, 1}) {
    for (size_t n : {369, 5000}) {
      const Values values = Sample(kind, n, 7);
      for (int bits : {2, 3, 4}) {
        const Result sketch = Measure(kSketchML, bits, values);
        for (const ValueCodec* other : {&kQSGD, &kLogQuantizer}) {
          int equal = 2;
          while (Measure(*other, equal, values).bits < sketch.bits) ++equal;
          CHECK(sketch.error < Measure(*other, equal, values).error);
        }
      }
    }
  }
}

TEST("SketchML is a contraction whatever the values") {
  const Values extremes = {3.4e38f, -3.4e38f, 1.0f, -1.0f, 0x1p-126f, -0x1p-126f, 1e-30f, 1e30f, 0.0f, 1e-40f};
  for (uint64_t seed = 0; seed < 500; ++seed) {
    Values values(2 + seed % 60);
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = extremes[RandomBits(seed, i) % extremes.size()] * static_cast<float>(seed % 2 == 0 ? 1.0 : Uniform(seed, i));
    }
    double norm = 0;
    for (float value : values) norm += std::pow(static_cast<double>(value), 2);
    if (norm > 1e-70) CHECK(Measure(kSketchML, 2, values).error < 1);
  }
}

TEST("SketchML gives few different magnitudes a bucket each") {
  Values decoded;
  const Values values = {1.5f, -1.5f, 3.0f, 3.0f, -0.25f, 0.0f, 1.5f, 100.0f, 1.5f, 1.5f};
  Encode(kSketchML, Options(2), values, &decoded);
  CHECK(decoded == values);
}

TEST("SketchML takes no bits for a value that all are") {
  Values decoded;
  CHECK(Encode(kSketchML, Options(4), Values(1000000, -2.0f), &decoded).size() == 5);
  CHECK(decoded == Values(1000000, -2.0f));
  CHECK(Encode(kSketchML, Options(4), Values(1000000, -0.0f), &decoded) == (Bytes{0x00, 0x0a}));
}

TEST("SketchML counts magnitudes below 2^-126 as zeros, and stays finite at the largest") {
  Values decoded;
  Encode(kSketchML, Options(4), {1.0f, -1e-40f, 0x1p-126f, 3.4028235e38f, -3.4028235e38f, 1.0f, 1.0f, 1.0f}, &decoded);
  CHECK(decoded[1] == 0 && !std::signbit(decoded[1]));
  CHECK(decoded[2] == 0x1p-126f);
  CHECK(decoded[3] == FloatOf(0x7f7f0000) && decoded[4] == -decoded[3]);
}

TEST("SketchML writes the bytes of the format page") {
  Values decoded;
  CHECK(Encode(kSketchML, Options(2), {1, -2, 1, 0, 1, 2, 1, -8, 1, 0}, &decoded) ==
        (Bytes{0x03, 0x02, 0xfe, 0xf0, 0xef, 0x1f, 0xc1, 0x18, 0x22, 0x06, 0x61, 0xa2, 0x2e}));
}

TEST("SketchML refuses what no encoder writes") {
  const Bytes good = {0x03, 0x02, 0xfe, 0xf0, 0xef, 0x1f, 0xc1, 0x18, 0x22, 0x06, 0x61, 0xa2, 0x2e};
  const auto with = [&](size_t at, uint8_t byte) {
    Bytes code = good;
    code[at] = byte;
    return code;
  };
  Values values(10);
  CHECK(Decode(kSketchML, {}, good, &values).ok());
  CHECK(Refuses(kSketchML, {}, 10, {}, "SketchML: neither buckets nor zeros"));
  CHECK(Refuses(kSketchML, {}, 10, with(1, 0x03), "SketchML: too many buckets"));
  CHECK(Refuses(kSketchML, {}, 10, with(2, 0x00), "SketchML: mean out of range"));
  CHECK(Refuses(kSketchML, {}, 10, with(3, 0xf1), "SketchML: mean out of range"));
  // One bucket, so no differences, of width 1.
  CHECK(Refuses(kSketchML, {}, 10, {0x01, 0x02, 0xfe, 0x02}, "SketchML: differences of means are wider than needed"));
  // One bucket and zeros, without a word for the zero: lengths 13, 0.
  CHECK(Refuses(kSketchML, {}, 10, {0x01, 0x02, 0xfe, 0xa0}, "SketchML: bucket without values"));
  CHECK(Refuses(kSketchML, {}, 10, Bytes(good.begin(), good.end() - 1), "code ends early"));
  CHECK(Refuses(kSketchML, {}, 11, good, "code ends early"));
}

}  // namespace
}  // namespace deepreduce::testing
