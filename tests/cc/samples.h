// Supports and values for tests, fuzzing and the bench, from a seed.
#ifndef DEEPREDUCE_TESTS_SAMPLES_H_
#define DEEPREDUCE_TESTS_SAMPLES_H_

#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

#include "deepreduce_tf/cc/lib/bits/float_bits.h"
#include "deepreduce_tf/cc/lib/bits/random.h"
#include "deepreduce_tf/cc/lib/bits/random_support.h"
#include "deepreduce_tf/cc/lib/bits/raw_indices.h"
#include "deepreduce_tf/cc/lib/index/index_codecs.h"
#include "deepreduce_tf/cc/lib/value/value_codecs.h"

namespace deepreduce::testing {

using Bytes = std::vector<uint8_t>;
using Support = std::vector<int32_t>;
using Values = std::vector<float>;

// Codecs behind which Deflate is tried, for 2 to 8 bits.
constexpr uint8_t kInnerCodecs[] = {kQSGDId, kFloat16Id, kBFloat16Id, kTernGradId, kNaturalId, kThreeLCId, kFloat32Id};

inline Support UniformSupport(int64_t size, int64_t count, uint64_t seed) {
  Support support(static_cast<size_t>(count));
  RandomSupport(Mix(seed), size, support);
  return support;
}

// Kept places in runs of up to `run`, absent ones too: `count` comes out by itself.
inline Support ClusteredSupport(int64_t size, int run, uint64_t seed) {
  Support support;
  bool keep = false;
  uint64_t draw = 0;
  for (int64_t next = 0; next < size; keep = !keep) {
    const int64_t end = next + 1 + static_cast<int64_t>(RandomBits(seed, draw++) % static_cast<uint64_t>(run));
    for (; next < end && next < size; ++next) {
      if (keep) support.push_back(static_cast<int32_t>(next));
    }
  }
  return support;
}

// Between 0 and 1, both excluded.
inline double Uniform(uint64_t seed, uint64_t i) { return (static_cast<double>(RandomBits(seed, i) >> 12) + 0.5) * 0x1p-52; }

inline Values NormalValues(size_t n, uint64_t seed) {
  Values values(n);
  for (size_t i = 0; i < n; ++i) {
    values[i] =
        static_cast<float>(0.01 * std::sqrt(-2 * std::log(Uniform(seed, 2 * i))) * std::cos(6.283185307 * Uniform(seed, 2 * i + 1)));
  }
  return values;
}

// Few different magnitudes, both signs.
inline Values Tied(size_t n, uint64_t seed, uint64_t different) {
  Values values(n);
  for (size_t i = 0; i < n; ++i) {
    const uint64_t bits = RandomBits(seed, i);
    values[i] = static_cast<float>((bits >> 8) % different) * 0.5f * (bits % 2 == 0 ? 1.0f : -1.0f);
  }
  return values;
}

// Magnitudes over all finite floats, denormal ones too.
inline Values AnyFinite(size_t n, uint64_t seed) {
  Values values(n);
  for (size_t i = 0; i < n; ++i) {
    const uint32_t bits = static_cast<uint32_t>(RandomBits(seed, i));
    values[i] = FloatOf((bits & 0x7f800000u) == 0x7f800000u ? bits & 0x807fffffu : bits);
  }
  return values;
}

// The code alone, at exactly its length on the heap, so that sanitizers see a read beyond it.
inline Bytes Encode(const IndexCodec& codec, const Segment& segment, const Support& indices) {
  Bytes code(RawIndexLength(static_cast<int64_t>(indices.size()), segment.size) + kSlack);
  const size_t length = EncodeIndices(codec, segment, indices, code.data());
  return Bytes(code.begin(), code.begin() + static_cast<std::ptrdiff_t>(length));
}

inline Error Decode(const IndexCodec& codec, const Segment& segment, const Bytes& code, Support* indices) {
  return DecodeIndices(codec, segment, code, *indices);
}

inline Bytes Encode(const ValueCodec& codec, const ValueOptions& options, const Values& values, Values* decoded) {
  Bytes code(4 * values.size() + kSlack);
  decoded->resize(values.size());
  const size_t length = EncodeValues(codec, options, values, code.data(), decoded->data());
  return Bytes(code.begin(), code.begin() + static_cast<std::ptrdiff_t>(length));
}

inline Error Decode(const ValueCodec& codec, const ValueOptions& options, const Bytes& code, Values* values) {
  return DecodeValues(codec, options, code, *values);
}

}  // namespace deepreduce::testing

#endif  // DEEPREDUCE_TESTS_SAMPLES_H_
