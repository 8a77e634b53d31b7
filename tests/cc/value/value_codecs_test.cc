// What holds for every value codec, and what Float16 and BFloat16 do.
#include <limits>

#include "deepreduce_tf/cc/lib/bits/all_finite.h"
#include "deepreduce_tf/cc/lib/bits/float_bits.h"
#include "tests/cc/check.h"
#include "tests/cc/plain_zlib.h"
#include "tests/cc/refuses.h"
#include "tests/cc/samples.h"

namespace deepreduce::testing {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kMax = std::numeric_limits<float>::max();
constexpr float kDenormal = std::numeric_limits<float>::denorm_min();

ValueOptions Options(int bits) {
  ValueOptions options;
  options.bits = bits;
  options.degree = 2 * bits - 1;  // to 15
  options.pieces = bits % 4;
  options.multiplier = 1.0f + static_cast<float>(8 - bits) / 7;
  options.contraction = bits % 2 == 1;
  options.inner = kInnerCodecs[bits - 2];
  options.noise_key = 99;
  options.deflate = Zlib();
  return options;
}

bool SameBits(const Values& a, const Values& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), 4 * a.size()) == 0);
}

// The decoded values, after checking that encoder and decoder agree on them bit by bit and that the code does not expand.
Values RoundTrip(const ValueCodec& codec, const ValueOptions& options, const Values& values) {
  Values seen;
  const Bytes code = Encode(codec, options, values, &seen);
  CHECK(code.size() <= 4 * values.size());
  Values decoded(values.size());
  const Error error = Decode(codec, options, code, &decoded);
  CHECK(error.ok());
  CHECK(SameBits(seen, decoded));
  return decoded;
}

TEST("Every value codec decodes to what its encoder says, for 0 to 300 values and more, at every number of bits") {
  for (const auto& [id, name, codec] : ValueCodecs()) {
    for (int bits = 2; bits <= 8; ++bits) {
      for (size_t n = 0; n <= 300; ++n) RoundTrip(*codec, Options(bits), NormalValues(n, n));
      for (size_t n : {511, 512, 513, 1024, 5000}) RoundTrip(*codec, Options(bits), NormalValues(n, n));
    }
  }
}

TEST("Finite values of any size decode to finite values, zeros to zeros") {
  const Values extremes = {kMax,  -kMax, 3e38f, 1e-30f,    -1e-38f, 1e-40f, kDenormal, -kDenormal, 0.0f, -0.0f,
                           65504, 65519, 1.0f,  -65520.0f, 2e-24f,  1e-45f, 0x1p-126f, 0x1p-100f,  1e30f};
  for (const auto& [id, name, codec] : ValueCodecs()) {
    for (int bits : {2, 3, 5, 8}) {
      for (bool l2 : {false, true}) {
        for (uint64_t seed = 0; seed < 20; ++seed) {
          Values values;
          for (size_t i = 0; i < 40 + 40 * (seed % 3); ++i) values.push_back(extremes[RandomBits(seed, i) % extremes.size()]);
          if (seed % 4 == 0) {
            for (float& value : values) value = value > 1 ? 0.0f : value;
          }
          ValueOptions options = Options(bits);
          options.l2_norm = l2;
          const Values decoded = RoundTrip(*codec, options, values);
          CHECK(AllFinite(decoded));
          for (size_t i = 0; i < values.size(); ++i) CHECK(values[i] != 0 || decoded[i] == 0);
        }
      }
    }
  }
}

TEST("Non-finite values travel raw, bit by bit") {
  for (const auto& [id, name, codec] : ValueCodecs()) {
    for (float wrong : {kInfinity, -kInfinity, kNan}) {
      for (size_t at : {0, 350, 699}) {
        Values values = NormalValues(700, 5);
        values[at] = wrong;
        CHECK(SameBits(RoundTrip(*codec, Options(8), values), values));
      }
    }
  }
}

TEST("Zeros alone decode to zeros under every codec") {
  for (const auto& [id, name, codec] : ValueCodecs()) {
    for (size_t n : {1, 7, 600, 5000}) {
      for (float value : RoundTrip(*codec, Options(4), Values(n, 0.0f))) CHECK(value == 0.0f);
    }
  }
}

TEST("A value code longer than raw is refused, and any code where there are no values") {
  for (const auto& [id, name, codec] : ValueCodecs()) {
    CHECK(Refuses(*codec, {}, 3, Bytes(13, 0), "value code is longer than raw values", 12));
    CHECK(Refuses(*codec, {}, 0, Bytes(1, 0), "value code is longer than raw values", 0));
  }
  CHECK(Refuses(kFloat32, {}, 3, Bytes(11, 0), "Float32 has no coded form", 11));
  for (int id : {0, 100, 255}) CHECK(FindValueCodec(static_cast<uint8_t>(id)) == nullptr);
}

TEST("Every truncation of a value code is refused") {
  for (const auto& [id, name, codec] : ValueCodecs()) {
    for (size_t n : {40, 700}) {
      Values decoded;
      const Values values = NormalValues(n, 3);
      const Bytes code = Encode(*codec, Options(8), values, &decoded);
      for (size_t length = 0; length < code.size(); ++length) {
        if (codec == &kFloat32 || code.size() == 4 * n) continue;
        CHECK(!Decode(*codec, Options(8), Bytes(code.begin(), code.begin() + static_cast<std::ptrdiff_t>(length)), &decoded).ok());
      }
    }
  }
}

#if defined(__SSE2__)
TEST("Encoders and decoders give the same bits where the CPU flushes denormal numbers to zero, as TensorFlow's threads do") {
  const Values extremes = {kMax, -3e38f, 1e-30f, -1e-38f, 1e-40f, kDenormal, 0.0f, 65519, 1.0f, 2e-24f, 0x1p-126f, 0x1p-100f, 0x1p-14f};
  for (const auto& [id, name, codec] : ValueCodecs()) {
    for (int bits : {2, 5, 8}) {
      for (uint64_t seed = 0; seed < 60; ++seed) {
        const float most = extremes[seed % extremes.size()];
        Values values;
        for (size_t i = 0; i < 600; ++i) {
          const float value = extremes[RandomBits(seed, i) % extremes.size()] * static_cast<float>(Uniform(seed, i));
          values.push_back(std::fabs(value) <= std::fabs(most) ? value : most);
        }
        Values seen, seen_flushed, decoded(values.size());
        const Bytes code = Encode(*codec, Options(bits), values, &seen);
        const unsigned mode = __builtin_ia32_stmxcsr();
        __builtin_ia32_ldmxcsr(mode | 0x8040);  // flush results, treat operands as zero
        const Bytes code_flushed = Encode(*codec, Options(bits), values, &seen_flushed);
        const bool ok = Decode(*codec, Options(bits), code, &decoded).ok();
        __builtin_ia32_ldmxcsr(mode);
        CHECK(ok && SameBits(decoded, seen));
        CHECK(code_flushed == code && SameBits(seen_flushed, seen));
      }
    }
  }
}
#endif

TEST("Float16 rounds to nearest even, through denormals, up to 65519") {
  const Values values = {1.0f,     1.00048828125f,  1.00146484375f, 0x1p-14f, 0x1p-24f,    0x1.8p-24f,
                         0x1p-25f, 0x1.000002p-25f, 65519.0f,       -0.0f,    0x1.ffcp-15f};
  const Values expected = {1.0f, 1.0f, 1.001953125f, 0x1p-14f, 0x1p-24f, 0x1p-23f, 0.0f, 0x1p-24f, 65504.0f, -0.0f, 0x1p-14f};
  CHECK(RoundTrip(kFloat16, Options(8), values) == expected);
  Values decoded;
  CHECK(Encode(kFloat16, Options(8), {1.0f, -2.0f}, &decoded) == (Bytes{0x00, 0x3c, 0x00, 0xc0}));
  CHECK(Encode(kFloat16, Options(8), {1.0f, 65520.0f}, &decoded).size() == 8);
}

TEST("Every finite binary16 decodes to itself and encodes to its own bytes") {
  for (int half = 0; half < 0x10000; ++half) {
    const Bytes code = {static_cast<uint8_t>(half), static_cast<uint8_t>(half >> 8)};
    Values value(1), seen;
    const Error error = Decode(kFloat16, Options(8), code, &value);
    CHECK(error.ok() == ((half & 0x7c00) != 0x7c00));
    if (error.ok()) CHECK(Encode(kFloat16, Options(8), value, &seen) == code);
  }
  CHECK(Refuses(kFloat16, {}, 2, {0, 0, 0, 0x7c}, "Float16: value is not finite", 2));
}

TEST("BFloat16 is the high half after rounding to nearest even") {
  Values decoded;
  CHECK(Encode(kBFloat16, Options(8), {FloatOf(0x3f808000), FloatOf(0x3f818000), FloatOf(0xbf808001)}, &decoded) ==
        (Bytes{0x80, 0x3f, 0x82, 0x3f, 0x81, 0xbf}));
  CHECK(Encode(kBFloat16, Options(8), {FloatOf(0x7f7f7fff)}, &decoded) == (Bytes{0x7f, 0x7f}));
  CHECK(Encode(kBFloat16, Options(8), {FloatOf(0x7f7f8000)}, &decoded).size() == 4);
  CHECK(Refuses(kBFloat16, {}, 2, {0, 0, 0x80, 0xff}, "BFloat16: value is not finite", 2));
}

}  // namespace
}  // namespace deepreduce::testing
