#include "deepreduce_tf/cc/lib/index/bloom_policy.h"

#include <algorithm>

#include "deepreduce_tf/cc/lib/bits/bit_stream.h"
#include "deepreduce_tf/cc/lib/bits/buffer.h"
#include "deepreduce_tf/cc/lib/bits/random.h"
#include "deepreduce_tf/cc/lib/bits/random_support.h"

namespace deepreduce {
namespace {

template <class Visit>
void ForEachPlace(Span<const uint64_t> places, Visit visit) {
  for (size_t block = 0; block < places.size; ++block) {
    for (uint64_t word = places[block]; word != 0; word &= word - 1) visit(static_cast<int32_t>(64 * block) + __builtin_ctzll(word));
  }
}

// Those from position `first` of the accepted places on.
void ChooseWindow(Span<const uint64_t> accepted, int64_t first, Span<int32_t> indices) {
  size_t written = 0;
  for (size_t block = 0; written < indices.size; ++block) {
    uint64_t word = accepted[block];
    for (; word != 0 && first > 0; --first) word &= word - 1;
    for (; word != 0 && written < indices.size; word &= word - 1) {
      indices[written++] = static_cast<int32_t>(64 * block) + __builtin_ctzll(word);
    }
  }
}

bool ChooseAtRandom(uint64_t key, Span<const uint64_t> accepted, int64_t accepted_count, Span<int32_t> indices) {
  if (!RandomSupport(key, accepted_count, indices)) return false;  // positions among the accepted places
  int32_t position = 0;
  size_t j = 0;
  ForEachPlace(accepted, [&](int32_t place) {
    if (j < indices.size && indices[j] == position++) indices[j++] = place;
  });
  return true;
}

// Calls visit(block, hashes) for each block that has places, with its distinct hashes as 64 * word + rotation: where two hash functions
// name one bit of a place, they do so for all places of the block.
template <class Visit>
void ForEachBlock(const BloomBits& filter, Span<const uint64_t> places, Visit visit) {
  for (size_t block = 0; block < places.size; ++block) {
    if (places[block] == 0) continue;
    uint32_t hashes[kMaxHashes];
    size_t distinct = 0;
    filter.ForEachHash(block, [&](uint64_t word, int rotation) {
      const uint32_t hash = static_cast<uint32_t>(64 * word) + static_cast<uint32_t>(rotation);
      bool known = false;
      for (size_t i = 0; i < distinct; ++i) known |= hashes[i] == hash;
      hashes[distinct] = hash;
      distinct += !known;
    });
    visit(block, Span<const uint32_t>(hashes, distinct));
  }
}

// Calls visit(block, word, rotation, bits) with the bits that the places of a block have in a word of the filter, turned by `rotation`.
template <class Visit>
void ForEachWord(const BloomBits& filter, Span<const uint64_t> places, Visit visit) {
  ForEachBlock(filter, places, [&](size_t block, Span<const uint32_t> hashes) {
    for (uint32_t hash : hashes) visit(block, hash >> 6, hash & 63, RotateLeft(places[block], hash & 63));
  });
}

// Calls visit(place, bit) for all bits of all places, place by place.
template <class Visit>
void ForEachBit(const BloomBits& filter, Span<const uint64_t> places, Visit visit) {
  ForEachBlock(filter, places, [&](size_t block, Span<const uint32_t> hashes) {
    for (uint64_t word = places[block]; word != 0; word &= word - 1) {
      const uint32_t offset = static_cast<uint32_t>(__builtin_ctzll(word));
      for (uint32_t hash : hashes) visit(static_cast<int32_t>(64 * block + offset), (hash & ~63u) | ((hash + offset) & 63));
    }
  });
}

// Policy P2. The set of a bit are the accepted places that have it; every bit that is set is one of some place of the true support.
class ConflictSets {
 public:
  // What the sets hold beside the true support goes with the size: about as many bits as there are places, whatever the rate. A filter
  // of an encoder has at most twice as many, one that accepts everything 32 times.
  static bool Fits(const BloomBits& filter, uint64_t places, uint64_t accepted_count, uint64_t count) {
    const uint64_t hashes = static_cast<uint64_t>(filter.hashes);
    return accepted_count * hashes <= UINT32_MAX && (accepted_count - count) * hashes <= (uint64_t{1} << 20) + 4 * places;
  }

  ConflictSets(const BloomBits& filter, Span<const uint64_t> accepted) : filter_(filter), accepted_(accepted) {}

  Error Choose(Span<int32_t> indices) {
    constexpr Error kOutOfMemory = {"BloomFilter: out of memory", 0};
    if (!TakeSingles()) return kOutOfMemory;
    if (taken_count_ > indices.size) return {"BloomFilter: more places than the count have a bit of their own", 2};
    if (taken_count_ < indices.size) {
      if (!NumberSets() || !SortSets() || !FillSets()) return kOutOfMemory;
      TakeFromSets(indices.size);
    }
    int32_t* next = indices.data;
    ForEachPlace(Span<const uint64_t>(taken_.get(), accepted_.size), [&](int32_t place) { *next++ = place; });
    return {};
  }

 private:
  // The only member of a set is no false positive.
  bool TakeSingles() {
    const Buffer<uint64_t> once = AllocateZeros<uint64_t>(filter_.words), again = AllocateZeros<uint64_t>(filter_.words);
    taken_ = AllocateZeros<uint64_t>(accepted_.size);
    if (once == nullptr || again == nullptr || taken_ == nullptr) return false;
    ForEachWord(filter_, accepted_, [&](size_t, size_t word, int, uint64_t bits) {
      again[word] |= once[word] & bits;
      once[word] |= bits;
    });
    for (size_t word = 0; word < filter_.words; ++word) once[word] &= ~again[word];
    ForEachWord(filter_, accepted_,
                [&](size_t block, size_t word, int rotation, uint64_t bits) { taken_[block] |= RotateRight(once[word] & bits, rotation); });
    for (size_t block = 0; block < accepted_.size; ++block) taken_count_ += CountBits(taken_[block]);
    return true;
  }

  // Numbers the bits whose sets have members left, in their order.
  bool NumberSets() {
    others_ = AllocateZeros<uint64_t>(accepted_.size);
    shared_ = AllocateZeros<uint64_t>(filter_.words);
    before_ = AllocateZeros<uint32_t>(filter_.words);
    if (others_ == nullptr || shared_ == nullptr || before_ == nullptr) return false;
    for (size_t block = 0; block < accepted_.size; ++block) others_[block] = accepted_[block] & ~taken_[block];
    ForEachWord(filter_, Others(), [&](size_t, size_t word, int, uint64_t bits) { shared_[word] |= bits; });
    for (size_t word = 0; word < filter_.words; ++word) {
      before_[word] = sets_count_;
      sets_count_ += static_cast<uint32_t>(CountBits(shared_[word]));
    }
    return true;
  }

  uint32_t Number(uint32_t bit) const {
    return before_[bit >> 6] + static_cast<uint32_t>(CountBits(shared_[bit >> 6] & ((uint64_t{1} << (bit & 63)) - 1)));
  }

  // By their size at first, members taken since included; a counting sort.
  bool SortSets() {
    starts_ = AllocateZeros<uint32_t>(sets_count_);
    order_ = AllocateZeros<uint32_t>(sets_count_);
    if (starts_ == nullptr || order_ == nullptr) return false;
    uint32_t* const sizes = starts_.get();
    ForEachWord(filter_, accepted_, [&](size_t, size_t word, int, uint64_t bits) {
      for (bits &= shared_[word]; bits != 0; bits &= bits - 1) {
        ++sizes[Number(static_cast<uint32_t>(64 * word) + static_cast<uint32_t>(__builtin_ctzll(bits)))];
      }
    });
    const size_t largest = *std::max_element(sizes, sizes + sets_count_);
    const Buffer<uint32_t> ends = AllocateZeros<uint32_t>(largest + 2);
    if (ends == nullptr) return false;
    for (uint32_t set = 0; set < sets_count_; ++set) ++ends[sizes[set] + 1];
    for (size_t size = 0; size <= largest; ++size) ends[size + 1] += ends[size];
    for (uint32_t set = 0; set < sets_count_; ++set) order_[ends[sizes[set]]++] = set;
    return true;
  }

  // The lists of members lie end to end, in that order.
  bool FillSets() {
    left_ = AllocateZeros<uint32_t>(sets_count_);
    if (left_ == nullptr) return false;
    ForEachBit(filter_, Others(), [&](int32_t, uint32_t bit) { ++left_[Number(bit)]; });
    uint32_t start = 0;
    for (uint32_t i = 0; i < sets_count_; ++i) {
      const uint32_t set = order_[i];
      starts_[set] = start;
      start += left_[set];
      left_[set] = 0;
    }
    members_ = AllocateZeros<int32_t>(start);
    if (members_ == nullptr) return false;
    ForEachBit(filter_, Others(), [&](int32_t place, uint32_t bit) {
      const uint32_t set = Number(bit);
      members_[starts_[set] + left_[set]++] = place;
    });
    return true;
  }

  // One of each set, again and again. Every draw removes a member, so there are no more draws than members.
  void TakeFromSets(size_t count) {
    const uint64_t key = Mix(filter_.key);
    uint64_t draws = 0;
    while (taken_count_ < count) {
      uint32_t kept = 0;
      for (uint32_t i = 0; i < sets_count_ && taken_count_ < count; ++i) {
        const uint32_t set = order_[i];
        int32_t* const list = members_.get() + starts_[set];
        for (bool took = false; !took && left_[set] > 0;) {
          int32_t& drawn = list[ScaleTo(RandomBits(key, draws++), left_[set])];
          took = Take(drawn);
          drawn = list[--left_[set]];
        }
        if (left_[set] > 0) order_[kept++] = set;
      }
      sets_count_ = kept;
    }
  }

  bool Take(int32_t place) {
    uint64_t& word = taken_[static_cast<size_t>(place >> 6)];
    const bool taken = word >> (place & 63) & 1;
    word |= uint64_t{1} << (place & 63);
    taken_count_ += !taken;
    return !taken;
  }

  Span<const uint64_t> Others() const { return Span<const uint64_t>(others_.get(), accepted_.size); }

  const BloomBits filter_;
  const Span<const uint64_t> accepted_;
  Buffer<uint64_t> taken_, others_;  // a bit for each place
  size_t taken_count_ = 0;
  Buffer<uint64_t> shared_;  // the bits of the others
  Buffer<uint32_t> before_;  // of these, those in the words before each
  uint32_t sets_count_ = 0;
  Buffer<uint32_t> order_;          // the sets, sorted
  Buffer<uint32_t> starts_, left_;  // the list of each set
  Buffer<int32_t> members_;
};

}  // namespace

Error ChoosePlaces(BloomPolicy policy, const BloomBits& filter, Span<const uint64_t> accepted, int64_t accepted_count,
                   Span<int32_t> indices) {
  const int64_t beyond = accepted_count - static_cast<int64_t>(indices.size);
  switch (policy) {
    case BloomPolicy::kP1:
      if (!ChooseAtRandom(Mix(filter.key), accepted, accepted_count, indices)) return {"BloomFilter: out of memory", 0};
      break;
    case BloomPolicy::kP2:
      if (64 * filter.words > UINT32_MAX) return {"BloomFilter: too long for policy p2", 2};
      if (!ConflictSets::Fits(filter, 64 * accepted.size, static_cast<uint64_t>(accepted_count), indices.size)) {
        return {"BloomFilter: too many accepted places for policy p2", 2};
      }
      return ConflictSets(filter, accepted).Choose(indices);
    case BloomPolicy::kMiddle:
      ChooseWindow(accepted, beyond / 2, indices);
      break;
    case BloomPolicy::kRightmost:
      ChooseWindow(accepted, beyond, indices);
      break;
    default:
      ChooseWindow(accepted, 0, indices);
  }
  return {};
}

}  // namespace deepreduce
