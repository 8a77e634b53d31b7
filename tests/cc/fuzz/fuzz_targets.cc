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
  Require(Encode(tree ? kAdaptive : kRice, segment, indices) == code, "an accepted code is the one that its support and shape have");
}

template <const IndexCodec& kCodec>
void RunIndices(Span<const uint8_t> input) {
  Segment segment;
  segment.size = Take<uint32_t>(&input) & 0x7fffffff;
  if (&kCodec == &kSeededSupport) segment.size &= 0xffff;  // its memory goes with the size
  Support indices(static_cast<size_t>(std::min<int64_t>(segment.size, Take<uint16_t>(&input))));
  const Bytes code = Copy(input);
  if (!Decode(kCodec, segment, code, &indices).ok()) return;
  Require(IsSupport(indices, segment.size), "an accepted support ascends strictly below the size");
  if (&kCodec == &kAdaptive) return RequireOneCodeForAShape(segment, indices, code);
  Require(Encode(kCodec, segment, indices) == code, "an accepted code is the one that its support has");
}

template <const IndexCodec& kCodec>
std::vector<Bytes> IndexSeeds() {
  std::vector<Bytes> seeds;
  for (int64_t size : {1, 20, 300, 5000, 60000}) {
    for (int density : {0, 1, 3, 20, 45, 55, 80, 97, 100}) {
      for (bool clustered : {false, true}) {
        Segment segment;
        segment.size = size;
        if (density % 2 == 0) segment.columns = segment.rows = 10;
        Support indices = clustered ? ClusteredSupport(size, density + 1, 3) : UniformSupport(size, size * density / 100, 7);
        if (&kCodec == &kSeededSupport) indices.resize(static_cast<size_t>(size * density / 100));
        Bytes seed;
        Append(static_cast<uint32_t>(size), &seed);
        Append(static_cast<uint16_t>(indices.size()), &seed);
        const Bytes code = Encode(kCodec, segment, indices);
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
  if (!Decode(kBloomFilter, segment, code, &indices).ok()) return;
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
    for (uint8_t policy = 0; policy < kBloomPolicies; ++policy) {
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

template <const ValueCodec& kCodec>
void RunValues(Span<const uint8_t> input) {
  Values values(Take<uint16_t>(&input));
  ValueOptions options;
  options.deflate = Zlib();
  const Bytes code = Copy(input);
  if (!Decode(kCodec, options, code, &values).ok()) return;
  const bool raw = code.size() == 4 * values.size();
  Require(raw || AllFinite(values), "values of an accepted code are finite");
  Values seen, decoded(values.size());
  const Bytes again = Encode(kCodec, options, values, &seen);
  Require(Decode(kCodec, options, again, &decoded).ok(), "what decodes can be encoded");
  Require(values.empty() || std::memcmp(seen.data(), decoded.data(), 4 * seen.size()) == 0, "an encoder knows what is decoded");
}

template <const ValueCodec& kCodec>
std::vector<Bytes> ValueSeeds() {
  std::vector<Bytes> seeds;
  for (size_t n : {0, 1, 5, 40, 300, 513, 900}) {
    for (int bits = 2; bits <= 8; ++bits) {
      ValueOptions options;
      options.bits = bits;
      options.degree = 2 * bits - 3;
      options.multiplier = 1.0f + static_cast<float>(8 - bits) / 7;
      options.inner = kInnerCodecs[bits - 2];
      options.shuffle = options.l2_norm = bits % 2 == 0;
      options.deflate = Zlib();
      Values values = NormalValues(n, n), decoded;
      for (size_t i = 0; i < n; ++i) values[i] = bits % 3 == 0 ? 0.0f : bits % 3 == 1 ? values[i] : values[i % 7];
      Bytes seed;
      Append(static_cast<uint16_t>(n), &seed);
      const Bytes code = Encode(kCodec, options, values, &decoded);
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
  Bytes inner(std::max(code.size(), MaxApplicationBytes(n)));
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

// A target is called as its codec.
const FuzzRegistration kRegistrations[] = {
#define DEEPREDUCE_INDEX_CODEC(id, name) FuzzRegistration({#name, RunIndices<k##name>, IndexSeeds<k##name>}),
#define DEEPREDUCE_INDEX_CODEC_WITH_OWN_ENCODER(id, name) FuzzRegistration({#name, Run##name, name##Seeds}),
#include "deepreduce_tf/cc/lib/index/index_codecs.def"
#define DEEPREDUCE_VALUE_CODEC(id, name) FuzzRegistration({#name, RunValues<k##name>, ValueSeeds<k##name>}),
#include "deepreduce_tf/cc/lib/value/value_codecs.def"
    FuzzRegistration({"Inflate", RunInflate, ValueSeeds<kDeflate>}),
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
