#include "deepreduce_tf/cc/lib/index/bloom_filter.h"

#include <algorithm>
#include <cmath>

#include "deepreduce_tf/cc/lib/bits/bit_stream.h"
#include "deepreduce_tf/cc/lib/bits/random.h"
#include "deepreduce_tf/cc/lib/bits/raw_indices.h"

namespace deepreduce {
namespace {

constexpr size_t kHeaderLength = 2;  // policy, number of hash functions

// The head of a code and a filter without a bit set, as long as `count` places and the rate ask for.
std::vector<uint8_t> EmptyCode(int64_t count, const BloomOptions& options) {
  constexpr double kLn2 = 0.6931471805599453;
  const double places = static_cast<double>(count);
  const double bits = std::ceil(places * std::abs(std::log(options.false_positive_rate)) / (kLn2 * kLn2));
  const long hashes = std::lround(bits / places * kLn2);
  std::vector<uint8_t> code(kHeaderLength + 8 * static_cast<size_t>(std::ceil(bits / 64)), 0);
  code[0] = static_cast<uint8_t>(options.policy);
  code[1] = static_cast<uint8_t>(std::clamp(hashes, 1L, static_cast<long>(kMaxHashes)));
  return code;
}

// Filters differ by step: a false positive that stayed would be sent at every step, or keep a place from ever being sent.
BloomBits FilterOf(const Segment& segment, Span<const uint8_t> code) {
  return {StreamKey(segment.seed, segment.step, segment.number), code[1], (code.size - kHeaderLength) / 8, code.data + kHeaderLength};
}

void Insert(const BloomBits& filter, Span<const int32_t> indices, uint8_t* words) {
  for (size_t j = 0; j < indices.size;) {
    const int32_t block = indices[j] >> 6;
    uint64_t places = 0;
    for (; j < indices.size && indices[j] >> 6 == block; ++j) places |= uint64_t{1} << (indices[j] & 63);
    filter.ForEachHash(static_cast<uint64_t>(block), [&](uint64_t word, int rotation) {
      uint8_t* at = words + 8 * word;
      StoreWord(LoadWord(at) | RotateLeft(places, rotation), at);
    });
  }
}

Error Decode(const Segment& segment, Span<const uint8_t> code, Span<int32_t> indices) {
  BloomReader reader;
  const Error error = reader.Open(segment, code, static_cast<int64_t>(indices.size));
  return error.ok() ? reader.Choose(indices) : error;
}

}  // namespace

Error EncodeBloomFilter(const Segment& segment, Span<const int32_t> indices, const BloomOptions& options, std::vector<uint8_t>* code,
                        std::vector<int32_t>* support) {
  code->clear();
  support->assign(indices.begin(), indices.end());
  const int64_t count = static_cast<int64_t>(indices.size);
  if (RawIndexLength(count, segment.size) == 0) return {};
  *code = EmptyCode(count, options);
  Insert(FilterOf(segment, *code), indices, code->data() + kHeaderLength);
  BloomReader reader;
  if (Error error = reader.Open(segment, *code, count); !error.ok()) return error;
  if (options.policy == BloomPolicy::kP0) support->resize(static_cast<size_t>(reader.accepted()));
  const Error error = reader.Choose(*support);
  if (static_cast<int64_t>(support->size()) == segment.size) code->clear();
  return error;
}

Error BloomReader::Open(const Segment& segment, Span<const uint8_t> code, int64_t count) {
  if (code.size < kHeaderLength + 8 || (code.size - kHeaderLength) % 8 != 0) {
    return {"BloomFilter: not a whole number of words", static_cast<int64_t>(code.size)};
  }
  if (code[0] >= kBloomPolicies) return {"BloomFilter: unknown policy", 0};
  if (code[1] < 1 || code[1] > kMaxHashes) return {"BloomFilter: not 1 to 32 hash functions", 1};
  policy_ = static_cast<BloomPolicy>(code[0]);
  filter_ = FilterOf(segment, code);
  // What a policy may need is in proportion to the filter, so a filter must be to the count.
  if (64 * (filter_.words - 1) >= 3 * static_cast<uint64_t>(filter_.hashes * count))
    return {"BloomFilter: longer than any count asks for", 2};
  blocks_ = static_cast<size_t>((segment.size + 63) / 64);
  accepted_ = AllocateBuffer<uint64_t>(blocks_);
  if (accepted_ == nullptr) return {"BloomFilter: out of memory", 0};
  Query();
  if (segment.size % 64 != 0) accepted_[blocks_ - 1] &= (uint64_t{1} << (segment.size % 64)) - 1;
  accepted_count_ = 0;
  for (size_t block = 0; block < blocks_; ++block) accepted_count_ += static_cast<int64_t>(CountBits(accepted_[block]));
  return {};
}

// All hash functions for all blocks: to leave a block as soon as none of its places is left costs more, in mispredicted branches.
void BloomReader::Query() {
  const BloomBits filter = filter_;
  uint64_t* const accepted = accepted_.get();
  for (size_t block = 0; block < blocks_; ++block) {
    uint64_t places = ~uint64_t{0};
    filter.ForEachHash(block, [&](uint64_t word, int rotation) { places &= RotateRight(LoadWord(filter.bytes + 8 * word), rotation); });
    accepted[block] = places;
  }
}

Error BloomReader::Choose(Span<int32_t> indices) const {
  const int64_t count = static_cast<int64_t>(indices.size);
  if (accepted_count_ < count) return {"BloomFilter: accepts fewer places than the count", 2};
  if (policy_ == BloomPolicy::kP0 && accepted_count_ != count) return {"BloomFilter: accepts more places than the count", 2};
  return ChoosePlaces(policy_, filter_, Span<const uint64_t>(accepted_.get(), blocks_), accepted_count_, indices);
}

const IndexCodec kBloomFilter = {nullptr, Decode, nullptr};

}  // namespace deepreduce
