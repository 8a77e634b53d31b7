// One target for each decoder of the codecs. An input is what a frame's table would say, then the code.
#include <algorithm>
#include <cstring>

#include "deepreduce_tf/cc/lib/bits/all_finite.h"
#include "deepreduce_tf/cc/lib/bits/leb128.h"
#include "deepreduce_tf/cc/lib/index/bloom_filter.h"
#include "tests/cc/fuzz/fuzz.h"
#include "tests/cc/plain_zlib.h"

namespace deepreduce::testing {
namespace {

// Adaptive has one code for each shape. A tree tells rows and columns; raw indices and the form of Rice tell nothing, so they are held
// against the codec Rice, which has no other.
void RequireOneCodeForAShape(Segment segment, const Support& indices, const Bytes& code) {
  const bool raw = code.size() == RawIndexLength(static_cast<int64_t>(indices.size()), segment.size);
  const bool tree = !raw && code[0] >= 0x80;
  if (tree && code[0] == 0x81) {
    size_t position = 1;
    uint32_t rows = 0, columns = 0;
    Require(GetVarint(code, &position, &rows) && GetVarint(code, &position, &columns), "a tree tells rows and columns");
    segment.rows = rows;
    segment.columns = columns;
  }
  Require(Encode(FindIndex(tree ? 9 : 3), segment, indices) == code, "an accepted code is the one that its support and shape have");
}

template <uint8_t kId>
void RunIndices(Span<const uint8_t> input) {
  Segment segment;
  segment.size = Take<uint32_t>(&input) & 0x7fffffff;
  if (kId == 0) segment.size &= 0xffff;  // its memory goes with the size
  Support indices(static_cast<size_t>(std::min<int64_t>(segment.size, Take<uint16_t>(&input))));
  const Bytes code = Copy(input);
  if (!Decode(FindIndex(kId), segment, code, &indices).ok()) return;
  Require(IsSupport(indices, segment.size), "an accepted support ascends strictly below the size");
  if (kId == 9) return RequireOneCodeForAShape(segment, indices, code);
  Require(Encode(FindIndex(kId), segment, indices) == code, "an accepted code is the one that its support has");
}

template <uint8_t kId>
std::vector<Bytes> IndexSeeds() {
  std::vector<Bytes> seeds;
  for (int64_t size : {1, 20, 300, 5000, 60000}) {
    for (int density : {0, 1, 3, 20, 45, 55, 80, 97, 100}) {
      for (bool clustered : {false, true}) {
        Segment segment;
        segment.size = size;
        if (density % 2 == 0) segment.columns = segment.rows = 10;
        Support indices = clustered ? ClusteredSupport(size, density + 1, 3) : UniformSupport(size, size * density / 100, 7);
        if (kId == 0) indices.resize(static_cast<size_t>(size * density / 100));
        Bytes seed;
        Append(static_cast<uint32_t>(size), &seed);
        Append(static_cast<uint16_t>(indices.size()), &seed);
        const Bytes code = Encode(FindIndex(kId), segment, indices);
        if (code.size() > 4000) continue;
        seed.insert(seed.end(), code.begin(), code.end());
        seeds.push_back(seed);
      }
    }
  }
  return seeds;
}

// The support that an encoder was given cannot be told from a code, so many codes are accepted that no encoder writes.
void RunBloomFilter(Span<const uint8_t> input) {
  Segment segment;
  segment.size = Take<uint16_t>(&input);  // time and memory go with the size
  Support indices(static_cast<size_t>(std::min<int64_t>(segment.size, Take<uint16_t>(&input))));
  segment.step = Take<uint8_t>(&input);
  const Bytes code = Copy(input);
  if (!Decode(FindIndex(8), segment, code, &indices).ok()) return;
  Require(IsSupport(indices, segment.size), "an accepted support ascends strictly below the size");
  Bytes all = code;
  if (code.empty() || code[0] == 1) return;
  all[0] = 1;
  BloomReader reader;
  Require(reader.Open(segment, all, static_cast<int64_t>(indices.size())).ok(), "a filter is one under every policy");
  Support accepted(static_cast<size_t>(reader.accepted()));
  Require(reader.Choose(accepted).ok(), "p0 gives all that is accepted");
  Require(std::includes(accepted.begin(), accepted.end(), indices.begin(), indices.end()), "a support is of accepted places");
}

std::vector<Bytes> BloomFilterSeeds() {
  std::vector<Bytes> seeds;
  for (int64_t size : {2, 64, 300, 5000}) {
    for (uint8_t policy = 0; policy < kPolicies; ++policy) {
      for (double rate : {1e-9, 0.01, 0.5}) {
        const Segment segment = {size, 0, 3, 0};
        const Support given = UniformSupport(size, 1 + size / 50, 7);
        Bytes seed, code;
        Support support;
        Require(EncodeBloomFilter(segment, given, {rate, BloomPolicy{policy}}, &code, &support).ok(), "a support can be encoded");
        Append(static_cast<uint16_t>(size), &seed);
        Append(static_cast<uint16_t>(support.size()), &seed);
        Append(static_cast<uint8_t>(segment.step), &seed);
        seed.insert(seed.end(), code.begin(), code.end());
        seeds.push_back(seed);
      }
    }
  }
  return seeds;
}

template <uint8_t kId>
void RunValues(Span<const uint8_t> input) {
  Values values(Take<uint16_t>(&input));
  ValueOptions options;
  options.deflate = Zlib();
  const Bytes code = Copy(input);
  if (!Decode(FindValue(kId), options, code, &values).ok()) return;
  const bool raw = code.size() == 4 * values.size();
  Require(raw || AllFinite(values), "values of an accepted code are finite");
  Values seen, decoded(values.size());
  const Bytes again = Encode(FindValue(kId), options, values, &seen);
  Require(Decode(FindValue(kId), options, again, &decoded).ok(), "what decodes can be encoded");
  Require(values.empty() || std::memcmp(seen.data(), decoded.data(), 4 * seen.size()) == 0, "an encoder knows what is decoded");
}

template <uint8_t kId>
std::vector<Bytes> ValueSeeds() {
  std::vector<Bytes> seeds;
  constexpr uint8_t kInner[] = {4, 2, 3, 10, 11, 12, 1};  // for 2 to 8 bits
  for (size_t n : {0, 1, 5, 40, 300, 513, 900}) {
    for (int bits = 2; bits <= 8; ++bits) {
      ValueOptions options;
      options.bits = bits;
      options.degree = 2 * bits - 3;
      options.multiplier = 1.0f + static_cast<float>(8 - bits) / 7;
      options.inner = kInner[bits - 2];
      options.shuffle = options.l2_norm = bits % 2 == 0;
      options.deflate = Zlib();
      Values values = NormalValues(n, n), decoded;
      for (size_t i = 0; i < n; ++i) values[i] = bits % 3 == 0 ? 0.0f : bits % 3 == 1 ? values[i] : values[i % 7];
      Bytes seed;
      Append(static_cast<uint16_t>(n), &seed);
      const Bytes code = Encode(FindValue(kId), options, values, &decoded);
      seed.insert(seed.end(), code.begin(), code.end());
      seeds.push_back(seed);
    }
  }
  return seeds;
}

// The code of an application's codec behind Deflate.
void RunInflate(Span<const uint8_t> input) {
  const size_t n = Take<uint16_t>(&input);
  Bytes code = Copy(input);
  if (!code.empty()) code[0] = kApplicationId;
  ValueOptions options;
  options.deflate = Zlib();
  options.inner = kApplicationId;
  Bytes inner(std::max(code.size(), MostApplicationBytes(n)));
  size_t length = 0;
  if (options.deflate == nullptr || !InflateApplicationCode(options, code, n, inner, &length).ok()) return;
  Require(length <= inner.size(), "what is inflated stays in its room");
  if (length == 0) return;
  Bytes again(kDeflateHeaderLength + length), back(inner.size());
  again.resize(DeflateCode(options, {inner.data(), length}, n, again.data()));
  Require(InflateApplicationCode(options, again, n, back, &length).ok() && back.size() == inner.size() &&
              std::memcmp(back.data(), inner.data(), length) == 0,
          "what was inflated comes back");
}

const FuzzRegistration kRegistrations[] = {
    FuzzRegistration({"seeded", RunIndices<0>, IndexSeeds<0>}),
    FuzzRegistration({"raw_indices", RunIndices<1>, IndexSeeds<1>}),
    FuzzRegistration({"bitmap", RunIndices<2>, IndexSeeds<2>}),
    FuzzRegistration({"rice", RunIndices<3>, IndexSeeds<3>}),
    FuzzRegistration({"elias_fano", RunIndices<4>, IndexSeeds<4>}),
    FuzzRegistration({"run_length", RunIndices<5>, IndexSeeds<5>}),
    FuzzRegistration({"huffman", RunIndices<6>, IndexSeeds<6>}),
    FuzzRegistration({"delta_huffman", RunIndices<7>, IndexSeeds<7>}),
    FuzzRegistration({"bloom_filter", RunBloomFilter, BloomFilterSeeds}),
    FuzzRegistration({"adaptive", RunIndices<9>, IndexSeeds<9>}),
    FuzzRegistration({"float32", RunValues<1>, ValueSeeds<1>}),
    FuzzRegistration({"float16", RunValues<2>, ValueSeeds<2>}),
    FuzzRegistration({"bfloat16", RunValues<3>, ValueSeeds<3>}),
    FuzzRegistration({"qsgd", RunValues<4>, ValueSeeds<4>}),
    FuzzRegistration({"log_quantizer", RunValues<5>, ValueSeeds<5>}),
    FuzzRegistration({"deflate", RunValues<6>, ValueSeeds<6>}),
    FuzzRegistration({"sketch_ml", RunValues<9>, ValueSeeds<9>}),
    FuzzRegistration({"poly_fit", RunValues<7>, ValueSeeds<7>}),
    FuzzRegistration({"double_exp_fit", RunValues<8>, ValueSeeds<8>}),
    FuzzRegistration({"tern_grad", RunValues<10>, ValueSeeds<10>}),
    FuzzRegistration({"natural", RunValues<11>, ValueSeeds<11>}),
    FuzzRegistration({"three_lc", RunValues<12>, ValueSeeds<12>}),
    FuzzRegistration({"inflate", RunInflate, ValueSeeds<6>}),
};

}  // namespace

const FuzzTarget& ChosenFuzzTarget() {
  const char* name = std::getenv("FUZZ_TARGET");
  const bool list = name == nullptr || std::strcmp(name, "list") == 0;
  for (const FuzzTarget& target : FuzzTargets()) {
    if (list) std::printf("%s\n", target.name);
    if (!list && std::strcmp(name, target.name) == 0) return target;
  }
  if (!list) std::fprintf(stderr, "FUZZ_TARGET: no target is called %s\n", name);
  std::exit(list ? 0 : 1);
}

}  // namespace deepreduce::testing
