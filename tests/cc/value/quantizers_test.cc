// QSGD and LogQuantizer: their errors, their bytes, and what they refuse.
#include <algorithm>
#include <string>

#include "deepreduce_tf/cc/lib/bits/float_bits.h"
#include "deepreduce_tf/cc/lib/value/level_packing.h"
#include "tests/cc/check.h"
#include "tests/cc/refuses.h"
#include "tests/cc/samples.h"

namespace deepreduce::testing {
namespace {

ValueOptions Options(int bits, uint64_t key = 1) {
  ValueOptions options;
  options.bits = bits;
  options.noise_key = key;
  return options;
}

Bytes Join(Bytes head, const Values& floats, const Bytes& levels) {
  for (float value : floats) {
    head.resize(head.size() + 4);
    StoreFloat(value, head.data() + head.size() - 4);
  }
  head.insert(head.end(), levels.begin(), levels.end());
  return head;
}

TEST("Levels of every width come back, and lie where the format page says") {
  for (int bits = 2; bits <= 8; ++bits) {
    for (size_t n = 1; n <= 520; ++n) {
      Bytes levels(n), unpacked(n);
      for (size_t i = 0; i < n; ++i) levels[i] = static_cast<uint8_t>(RandomBits(n, i) & ((1u << bits) - 1));
      Bytes packed(PackedLength(n, bits) + kSlack);
      PackLevels(levels, bits, packed.data());
      packed.resize(PackedLength(n, bits));
      UnpackLevels(packed, bits, unpacked);
      CHECK(unpacked == levels);
      if (n != 13) continue;
      for (size_t bit = 0; bit < n * static_cast<size_t>(bits); ++bit) {
        const size_t width = static_cast<size_t>(bits);
        CHECK((packed[bit / 8] >> (bit % 8) & 1) == (levels[bit / width] >> (bit % width) & 1));
      }
    }
  }
}

TEST("QSGD errs by less than one step of its block") {
  for (int bits = 2; bits <= 8; ++bits) {
    const Values values = NormalValues(1500, 4);
    Values decoded;
    Encode(kQSGD, Options(bits), values, &decoded);
    for (size_t first = 0; first < values.size(); first += 512) {
      const size_t end = std::min(values.size(), first + 512);
      float largest = 0;
      for (size_t i = first; i < end; ++i) largest = std::max(largest, std::fabs(values[i]));
      const float step = largest / static_cast<float>((1 << (bits - 1)) - 1);
      for (size_t i = first; i < end; ++i) CHECK(std::fabs(decoded[i] - values[i]) <= 1.00001f * step);
    }
  }
}

TEST("QSGD is unbiased under both norms") {
  for (bool l2 : {false, true}) {
    const Values values = {0.9f, -0.31f, 0.05f, -1.0f, 0.7f, 0.33333f, 1e-3f, 0.0f};
    const int kDraws = 40000;
    std::vector<double> sums(values.size());
    Values decoded;
    for (int key = 0; key < kDraws; ++key) {
      ValueOptions options = Options(3, Mix(static_cast<uint64_t>(key)));
      options.l2_norm = l2;
      Encode(kQSGD, options, values, &decoded);
      for (size_t i = 0; i < values.size(); ++i) sums[i] += static_cast<double>(decoded[i]);
    }
    // The step is at most 1.7 / 3, its deviation half of that over 200 draws to the root: five of them.
    for (size_t i = 0; i < values.size(); ++i) CHECK(std::fabs(sums[i] / kDraws - static_cast<double>(values[i])) < 0.0075);
  }
}

TEST("QSGD draws other noise for another key, and the same for the same") {
  const Values values = NormalValues(600, 4);
  Values decoded;
  const Bytes code = Encode(kQSGD, Options(4, 1), values, &decoded);
  CHECK(code == Encode(kQSGD, Options(4, 1), values, &decoded));
  CHECK(code != Encode(kQSGD, Options(4, 2), values, &decoded));
}

TEST("QSGD's neighbours draw independently") {
  // Two values half-way between levels: each pair of results must come up about as often as the others.
  int counts[4] = {};
  for (uint64_t key = 0; key < 4000; ++key) {
    Values decoded;
    Encode(kQSGD, Options(2, Mix(key)), {0.5f, 0.5f, 1.0f, 1.0f}, &decoded);
    ++counts[(decoded[0] != 0) + 2 * (decoded[1] != 0)];
  }
  for (int count : counts) CHECK(count > 850 && count < 1150);
}

TEST("QSGD writes the bytes of the format page where there is nothing to round") {
  Values decoded;
  // Scale 3 under 3 bits, so the step is 1: levels 3, 7 (-3), 0, 5 (-1).
  const Bytes code = Join({3}, {3.0f}, {0x3b, 0x0a});
  CHECK(Encode(kQSGD, Options(3), {3.0f, -3.0f, 0.0f, -1.0f}, &decoded) == code);
  CHECK(decoded == (Values{3.0f, -3.0f, 0.0f, -1.0f}));
}

TEST("QSGD's l2 norm shrinks results under 5 bits and fewer, where asked to be a contraction") {
  const Values values = NormalValues(512, 7);
  for (int bits = 2; bits <= 8; ++bits) {
    ValueOptions options = Options(bits);
    options.l2_norm = true;
    Values plain, shrunk;
    Encode(kQSGD, options, values, &plain);
    options.contraction = true;
    Encode(kQSGD, options, values, &shrunk);
    CHECK((plain == shrunk) == (bits >= 6));
    double error = 0, norm = 0;
    for (size_t i = 0; i < values.size(); ++i) {
      error += std::pow(shrunk[i] - values[i], 2);
      norm += std::pow(values[i], 2);
    }
    CHECK(error < norm);
  }
}

TEST("QSGD's max norm rounds to nearest at 4 bits and fewer, where asked to be a contraction") {
  const Values values = NormalValues(5000, 9);
  for (int bits = 2; bits <= 8; ++bits) {
    ValueOptions options = Options(bits);
    Values plain, nearest;
    Encode(kQSGD, options, values, &plain);
    options.contraction = true;
    Encode(kQSGD, options, values, &nearest);
    CHECK((plain == nearest) == (bits >= 5));
    for (size_t i = 0; bits <= 4 && i < values.size(); ++i) {
      CHECK(std::abs(nearest[i] - values[i]) <= 1.0001 * std::abs(values[i]));
    }
  }
}

TEST("QSGD sends values raw whose l2 norm is beyond float32") {
  ValueOptions options = Options(8);
  options.l2_norm = true;
  Values decoded;
  const Values values(100, 3e38f);
  CHECK(Encode(kQSGD, options, values, &decoded).size() == 400);
  CHECK(decoded == values);
}

TEST("QSGD refuses parameters, scales and levels that no encoder writes") {
  const Bytes good = {0x3b, 0x0a};
  Values values(4);
  CHECK(Decode(kQSGD, {}, Join({0x13}, {3.0f}, good), &values).ok());
  for (uint8_t parameter : {0x00, 0x01, 0x09, 0x23, 0x43, 0x83}) {
    CHECK(Refuses(kQSGD, {}, 4, Join({parameter}, {3.0f}, good), "QSGD: unknown parameter bits"));
  }
  for (float scale : {-1.0f, -0.0f, 0x1p-101f, 1e-40f, INFINITY, NAN}) {
    CHECK(Refuses(kQSGD, {}, 4, Join({3}, {scale}, good), "QSGD: scale out of range"));
  }
  CHECK(Refuses(kQSGD, {}, 4, Join({3}, {3.0f}, {0x3b, 0x09}), "QSGD: negative zero level"));
  CHECK(Refuses(kQSGD, {}, 4, Join({3}, {0.0f}, good), "QSGD: level that is not zero under scale 0"));
  CHECK(Refuses(kQSGD, {}, 4, Join({3}, {3.0f}, {0x3b, 0x1a}), "padding bits are not zero"));
  CHECK(Refuses(kQSGD, {}, 4, Join({3}, {3.0f}, {0x3b}), "code ends early"));
  CHECK(Refuses(kQSGD, {}, 4, Join({3}, {3.0f}, {0x3b, 0x0a, 0}), "bytes after the end of the code"));
  CHECK(Refuses(kQSGD, {}, 4, {}, "QSGD: empty code"));
}

TEST("LogQuantizer errs by less than a bin, and by half of one without a table") {
  for (int bits = 2; bits <= 8; ++bits) {
    for (size_t n : {15, 200, 5000}) {
      for (bool zeros : {false, true}) {
        Values values = NormalValues(n, 6), decoded;
        if (zeros) values[n / 2] = 0;
        const Bytes code = Encode(kLogQuantizer, Options(bits), values, &decoded);
        if (code.size() == 4 * n) continue;
        int64_t lo = kInfinityBits, hi = 0;
        for (float value : values) {
          if (value != 0) lo = std::min<int64_t>(lo, MagnitudeBits(value));
          hi = std::max<int64_t>(hi, MagnitudeBits(value));
        }
        const int64_t bins = (1 << (bits - 1)) - (zeros ? 1 : 0);
        const bool table = n >= 16 * static_cast<size_t>(bins);
        CHECK(code[0] == (bits | (table ? 16 : 0) | (zeros ? 32 : 0)));
        const int64_t bound = (hi - lo + 1) / (table ? bins : 2 * bins) + 2;
        for (size_t i = 0; i < n; ++i) {
          CHECK(std::abs(int64_t{MagnitudeBits(values[i])} - MagnitudeBits(decoded[i])) <= bound);
          CHECK(std::signbit(values[i]) == std::signbit(decoded[i]));
        }
      }
    }
  }
}

TEST("LogQuantizer's bins are exactly those of the format page") {
  for (int bits : {2, 5, 8}) {
    for (uint64_t seed = 0; seed < 60; ++seed) {
      // Ranges from one float to all of them.
      const int64_t lo = kSmallestNormalBits + static_cast<int64_t>(RandomBits(seed, 0) % 1000000);
      const int64_t width = int64_t{1} << (seed % 31);
      const int64_t hi = std::min<int64_t>(kInfinityBits - 1, lo + width - 1);
      Values values = {FloatOf(static_cast<uint32_t>(lo)), FloatOf(static_cast<uint32_t>(hi))}, decoded;
      const int64_t bins = 1 << (bits - 1);
      for (int64_t j = 0; j < 400; ++j) {
        // Near the edges of bins, where rounding would show.
        const int64_t x = lo + (j % bins) * (hi - lo + 1) / bins + static_cast<int64_t>(RandomBits(seed, j + 1) % 3) - 1;
        values.push_back(FloatOf(static_cast<uint32_t>(std::clamp(x, lo, hi))));
      }
      const Bytes code = Encode(kLogQuantizer, Options(bits), values, &decoded);
      Bytes levels(values.size());
      const size_t start = code.size() - PackedLength(values.size(), bits);
      UnpackLevels(Span<const uint8_t>(code.data() + start, code.size() - start), bits, levels);
      for (size_t i = 0; i < values.size(); ++i) CHECK(levels[i] == (MagnitudeBits(values[i]) - lo) * bins / (hi - lo + 1));
    }
  }
}

TEST("LogQuantizer counts magnitudes below 2^-126 as zeros") {
  Values decoded;
  Encode(kLogQuantizer, Options(4), {1.0f, -1e-40f, 2.0f, 0x1p-126f, -4.0f, 1.0f}, &decoded);
  CHECK(decoded[1] == 0 && !std::signbit(decoded[1]));
  CHECK(decoded[3] > 0);
}

TEST("LogQuantizer writes the bytes of the format page") {
  Values decoded;
  // lo = 1, hi = 2: bins [1, 1.5] and (1.5, 2] under 2 bits; levels 0, 1, 3 (-2), 2 (-1), 0.
  const Bytes code = Join({2}, {1.0f, 2.0f}, {0xb4, 0x00});
  CHECK(Encode(kLogQuantizer, Options(2), {1.0f, 1.75f, -2.0f, -1.0f, 1.5f}, &decoded) == code);
  CHECK(decoded == (Values{1.25f, 1.75f, -1.75f, -1.25f, 1.25f}));
  // Zeros alone.
  CHECK(Encode(kLogQuantizer, Options(2), Values(8, 0.0f), &decoded) == Join({0x22}, {1.0f, 1.0f}, {0, 0}));
  // 32 values, two bins: a table of means.
  Values many(32, 1.0f);
  many[1] = -3.0f;
  many[2] = 2.0f;
  CHECK(Encode(kLogQuantizer, Options(2), many, &decoded) == Join({0x12}, {1.0f, 2.5f}, {0x1c, 0, 0, 0, 0, 0, 0, 0}));
}

TEST("LogQuantizer refuses parameters, tables and levels that no encoder writes") {
  const Bytes good = {0xb4, 0x01};
  Values values(5);
  CHECK(Decode(kLogQuantizer, {}, Join({2}, {1.0f, 2.0f}, good), &values).ok());
  for (uint8_t parameter : {0x00, 0x01, 0x09, 0x42, 0x82}) {
    CHECK(Refuses(kLogQuantizer, {}, 5, Join({parameter}, {1.0f, 2.0f}, good), "LogQuantizer: unknown parameter bits"));
  }
  CHECK(Refuses(kLogQuantizer, {}, 5, Join({0x12}, {1.0f, 2.0f}, good), "LogQuantizer: table flag against the rule"));
  CHECK(Refuses(kLogQuantizer, {}, 32, Join({2}, {1.0f, 2.0f}, Bytes(8, 0)), "LogQuantizer: table is missing"));
  CHECK(Refuses(kLogQuantizer, {}, 32, Join({0x22}, {1.0f, 1.0f}, Bytes(8, 1)), "LogQuantizer: table is missing"));
  CHECK(Refuses(kLogQuantizer, {}, 32, Join({0x22}, {1.0f, 2.0f}, Bytes(8, 0)), "LogQuantizer: zeros alone in another form"));
  const char* kRange = "LogQuantizer: values of the bins out of range or order";
  for (float lo : {0.0f, -1.0f, 1e-40f, 2.5f, INFINITY, NAN}) CHECK(Refuses(kLogQuantizer, {}, 5, Join({2}, {lo, 2.0f}, good), kRange));
  for (float hi : {0.5f, INFINITY, NAN, -2.0f}) CHECK(Refuses(kLogQuantizer, {}, 5, Join({2}, {1.0f, hi}, good), kRange));
  for (float mean : {1.0f, 0.5f, -2.0f, INFINITY, NAN, -0.0f, 1e-40f}) {
    CHECK(Refuses(kLogQuantizer, {}, 32, Join({0x12}, {1.0f, mean}, Bytes(8, 0)), kRange));
  }
  CHECK(Refuses(kLogQuantizer, {}, 32, Join({0x12}, {1.0f, 2.0f}, Bytes(8, 0)), "LogQuantizer: mean of an empty bin"));
  CHECK(Refuses(kLogQuantizer, {}, 32, Join({0x32}, {1.0f}, Bytes(8, 0)), "LogQuantizer: mean of an empty bin"));
  CHECK(Refuses(kLogQuantizer, {}, 32, Join({0x32}, {0.0f}, Bytes(8, 0)), "LogQuantizer: zeros alone in another form"));
  CHECK(Refuses(kLogQuantizer, {}, 5, Join({0x22}, {1.0f, 2.0f}, {0x55, 0x01}), "LogQuantizer: zeros flag without a zero"));
  const char* kLevel = "LogQuantizer: level of an empty bin or negative zero";
  CHECK(Refuses(kLogQuantizer, {}, 32, Join({0x12}, {1.0f, 0.0f}, Bytes(8, 1)), kLevel));
  CHECK(Refuses(kLogQuantizer, {}, 5, Join({0x22}, {1.0f, 2.0f}, {2, 0}), kLevel));
  CHECK(Refuses(kLogQuantizer, {}, 5, Join({2}, {1.0f, 2.0f}, {0xb4, 0x05}), "padding bits are not zero"));
  CHECK(Refuses(kLogQuantizer, {}, 5, Join({2}, {1.0f, 2.0f}, {0xb4}), "code ends early"));
  CHECK(Refuses(kLogQuantizer, {}, 5, Join({2}, {1.0f, 2.0f}, {0xb4, 1, 0}), "bytes after the end of the code"));
  CHECK(Refuses(kLogQuantizer, {}, 5, {}, "LogQuantizer: empty code"));
}

}  // namespace
}  // namespace deepreduce::testing
