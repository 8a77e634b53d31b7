#include "deepreduce_tf/cc/lib/index/bloom_filter.h"

#include <algorithm>
#include <iterator>

#include "tests/cc/check.h"
#include "tests/cc/samples.h"

namespace deepreduce::testing {
namespace {

std::vector<BloomPolicy> Policies() {
  std::vector<BloomPolicy> policies;
  for (size_t policy = 0; policy < kBloomPolicies; ++policy) policies.push_back(static_cast<BloomPolicy>(policy));
  return policies;
}
constexpr double kRates[] = {0x1p-10, 0.125, 0.5};

bool Same(const char* name, const char* expected) { return name != nullptr && std::strcmp(name, expected) == 0; }

struct Coded {
  Bytes code;
  Support support;
};

Coded Encode(const Segment& segment, const Support& indices, double rate, BloomPolicy policy) {
  Coded coded;
  CHECK(EncodeBloomFilter(segment, indices, {rate, policy}, &coded.code, &coded.support).ok());
  return coded;
}

Support Decoded(const Segment& segment, const Coded& coded) {
  Support decoded(coded.support.size(), -1);
  CHECK(Decode(kBloomFilter, segment, coded.code, &decoded).ok());
  CHECK(IsSupport(decoded, segment.size));
  return decoded;
}

Error Refusal(const Segment& segment, const Bytes& code, int64_t count) {
  Support support(static_cast<size_t>(count));
  return Decode(kBloomFilter, segment, code, &support);
}

Segment SegmentOf(int64_t size, uint32_t number = 0) { return {size, 5, 9, number}; }

TEST("BloomFilter: the encoder knows the support that decodes, under every policy in a thousand cases") {
  for (BloomPolicy policy : Policies()) {
    for (uint64_t i = 0; i < 1000; ++i) {
      const Segment segment = SegmentOf(static_cast<int64_t>(1 + RandomBits(1, i) % 1500), static_cast<uint32_t>(i));
      const Support given = UniformSupport(segment.size, segment.size * static_cast<int64_t>(RandomBits(2, i) % 101) / 100, i);
      const double rate = std::exp(std::log(1e-9) * Uniform(3, i));
      const Coded coded = Encode(segment, given, rate, policy);
      CHECK(Decoded(segment, coded) == coded.support);
      const bool all = policy == BloomPolicy::kP0;
      CHECK(all || coded.support.size() == given.size());
      CHECK(!all || std::includes(coded.support.begin(), coded.support.end(), given.begin(), given.end()));
    }
  }
}

// Also in tests/test_bloom_filter.py, on the optimised op library; there is one portable code path.
constexpr uint64_t kDigests[] = {0x2797622598a934cd, 0x159d58102adad281, 0xc3ddaf198feedc0c, 0xa20df3d96eacd463,
                                 0x2797622598a934cd, 0x564bc250dddae7c0, 0x23c7fc1de6ca582b};

TEST("BloomFilter: many supports are the same in every build") {
  for (BloomPolicy policy : Policies()) {
    uint64_t digest = 0, position = 0;
    for (double rate : kRates) {
      for (uint32_t i = 0; i < 40; ++i) {
        const Segment segment = SegmentOf(static_cast<int64_t>(1 + RandomBits(1, i) % 3000), i);
        Support given(static_cast<size_t>(segment.size) * (RandomBits(2, i) % 100) / 100);
        RandomSupport(StreamKey(5, 8, i), segment.size, given);
        for (int32_t place : Decoded(segment, Encode(segment, given, rate, policy))) {
          digest += RandomBits(static_cast<uint64_t>(place), position++);
        }
      }
    }
    if (digest != kDigests[static_cast<int>(policy)]) std::printf("  policy %d: 0x%016lx\n", static_cast<int>(policy), digest);
    CHECK(digest == kDigests[static_cast<int>(policy)]);
  }
}

TEST("BloomFilter: nothing and everything kept have an empty code, and no other") {
  const Segment segment = SegmentOf(77);
  for (BloomPolicy policy : Policies()) {
    for (int64_t count : {0, 77}) {
      const Coded coded = Encode(segment, UniformSupport(77, count, 1), 0.5, policy);
      CHECK(coded.code.empty() && static_cast<int64_t>(coded.support.size()) == count);
      CHECK(Refusal(segment, {}, count).ok());
      CHECK(!Refusal(segment, Bytes(10, 1), count).ok());
    }
  }
}

TEST("BloomFilter: p0 of a filter that accepts all is everything, in no bytes") {
  const Coded coded = Encode(SegmentOf(70), UniformSupport(70, 69, 1), 0.999, BloomPolicy::kP0);
  CHECK(coded.code.empty() || coded.support.size() < 70);
  const Coded full = Encode(SegmentOf(3), {0, 1}, 0.999, BloomPolicy::kP0);
  CHECK(full.code.empty() == (full.support.size() == 3));
}

TEST("BloomFilter: a code is refused that breaks a rule of the page") {
  const Segment segment = SegmentOf(1000);
  const Support given = UniformSupport(1000, 50, 1);
  const Coded coded = Encode(segment, given, 0.01, BloomPolicy::kP1);
  const auto with = [&](size_t byte, int value) {
    Bytes code = coded.code;
    code[byte] = static_cast<uint8_t>(value);
    return code;
  };
  CHECK(coded.code.size() == 2 + 8 * 8 && coded.code[0] == 2 && coded.code[1] == 7);
  CHECK(Refusal(segment, coded.code, 50).ok());
  for (size_t length = 0; length < coded.code.size(); ++length) {
    const Error error = Refusal(segment, Bytes(coded.code.begin(), coded.code.begin() + static_cast<std::ptrdiff_t>(length)), 50);
    CHECK((length >= 10 && length % 8 == 2) || Same(error.name, "BloomFilter: not a whole number of words"));
  }
  CHECK(Same(Refusal(segment, with(0, 7), 50).name, "BloomFilter: unknown policy"));
  for (int hashes : {0, 33, 255}) CHECK(Same(Refusal(segment, with(1, hashes), 50).name, "BloomFilter: not 1 to 32 hash functions"));
  CHECK(Refusal(segment, with(1, 7), 22).ok());  // 64 * 7 < 3 * 7 * 22
  CHECK(Same(Refusal(segment, with(1, 7), 21).name, "BloomFilter: longer than any count asks for"));
  CHECK(Same(Refusal(segment, with(0, 2), 300).name, "BloomFilter: accepts fewer places than the count"));
  CHECK(Same(Refusal(segment, with(0, 1), 50).name, "BloomFilter: accepts more places than the count"));
  CHECK(Same(Refusal(segment, with(0, 3), 40).name, "BloomFilter: more places than the count have a bit of their own"));
}

TEST("BloomFilter: a filter with all bits set gives any count of any segment under every policy but p0") {
  for (BloomPolicy policy : Policies()) {
    for (int64_t size : {2, 64, 65, 5000}) {
      for (int64_t count : {int64_t{1}, size / 2, size - 1}) {
        for (int hashes : {1, 32}) {
          const uint64_t words = 1 + (3 * static_cast<uint64_t>(hashes * count) - 1) / 64;
          Bytes code(2 + 8 * words, 0xff);
          code[0] = static_cast<uint8_t>(policy);
          code[1] = static_cast<uint8_t>(hashes);
          const Error error = Refusal(SegmentOf(size), code, count);
          const bool own_bits =
              policy == BloomPolicy::kP2 && Same(error.name, "BloomFilter: more places than the count have a bit of their own");
          CHECK(error.ok() == (policy != BloomPolicy::kP0) || own_bits);
        }
      }
    }
  }
}

TEST("BloomFilter: a few bytes that accept everything under p2 are refused before they take memory in proportion") {
  Bytes code(10, 0xff);
  code[0] = 3;
  code[1] = 32;
  CHECK(Refusal(SegmentOf(30000), code, 1).ok());
  CHECK(Same(Refusal(SegmentOf(100000000), code, 1).name, "BloomFilter: too many accepted places for policy p2"));
  code[1] = 1;
  CHECK(Refusal(SegmentOf(100000), code, 1).ok());
}

TEST("BloomFilter: the window of a policy lies where it says") {
  const Segment segment = SegmentOf(3000);
  const Support given = UniformSupport(3000, 300, 2);
  const Support all = Encode(segment, given, 0.2, BloomPolicy::kP0).support;
  const std::ptrdiff_t beyond = static_cast<std::ptrdiff_t>(all.size() - given.size());
  CHECK(beyond > 300);
  const auto window = [&](std::ptrdiff_t first) { return Support(all.begin() + first, all.begin() + first + 300); };
  CHECK(Encode(segment, given, 0.2, BloomPolicy::kNaive).support == window(0));
  CHECK(Encode(segment, given, 0.2, BloomPolicy::kLeftmost).support == window(0));
  CHECK(Encode(segment, given, 0.2, BloomPolicy::kMiddle).support == window(beyond / 2));
  CHECK(Encode(segment, given, 0.2, BloomPolicy::kRightmost).support == window(beyond));
}

TEST("BloomFilter: seed, step and segment each change the false positives") {
  const Support given = UniformSupport(20000, 300, 2);
  const Segment segment = {20000, 1, 2, 3};
  const Support first = Encode(segment, given, 0.05, BloomPolicy::kP0).support;
  for (const Segment& other : {Segment{20000, 2, 2, 3}, Segment{20000, 1, 3, 3}, Segment{20000, 1, 2, 4}}) {
    const Support second = Encode(other, given, 0.05, BloomPolicy::kP0).support;
    Support both;
    std::set_intersection(first.begin(), first.end(), second.begin(), second.end(), std::back_inserter(both));
    CHECK(both.size() < given.size() + 100);  // 0.05^2 * 19700 is 49
  }
}

TEST("BloomFilter: works up to the largest size") {
  const Segment segment = SegmentOf(0x7fffffff);
  const Support given = {0, 1, 64, 0x40000000, 0x7ffffffd, 0x7ffffffe};
  for (BloomPolicy policy : {BloomPolicy::kP0, BloomPolicy::kP2}) {
    const Coded coded = Encode(segment, given, 1e-9, policy);
    CHECK(Decoded(segment, coded) == coded.support);
    CHECK(policy == BloomPolicy::kP2 || std::includes(coded.support.begin(), coded.support.end(), given.begin(), given.end()));
  }
}

}  // namespace
}  // namespace deepreduce::testing
