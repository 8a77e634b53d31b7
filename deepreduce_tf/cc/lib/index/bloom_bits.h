// The bits of a Bloom filter: 64 neighbouring elements, a block, have theirs in the same words, so one load tests them all.
#ifndef DEEPREDUCE_LIB_INDEX_BLOOM_BITS_H_
#define DEEPREDUCE_LIB_INDEX_BLOOM_BITS_H_

#include <cstdint>

#include "deepreduce_tf/cc/lib/bits/random.h"

namespace deepreduce {

constexpr int kMaxHashes = 32;

inline uint64_t RotateLeft(uint64_t word, int by) { return word << by | word >> (-by & 63); }
inline uint64_t RotateRight(uint64_t word, int by) { return word >> by | word << (-by & 63); }

struct BloomBits {
  uint64_t key = 0;
  int hashes = 0;
  uint64_t words = 0;
  const uint8_t* bytes = nullptr;  // `words` words, not aligned

  // Calls visit(word, rotation) for each hash function: element i of the block has bit (i + rotation) mod 64 of that word.
  template <class Visit>
  void ForEachHash(uint64_t block, Visit visit) const {
    // Each hash from the one before by a linear congruential step (Steele and Vigna, "Computationally easy, spectrally good multipliers",
    // 2021). Multiples of one step would lie in progressions, which coincide too often: twice the false positives at a rate of 1e-4.
    constexpr uint64_t kMultiplier = 0xd1342543de82ef95u;
    uint64_t hash = RandomBits(key, 2 * block);
    const uint64_t step = RandomBits(key, 2 * block + 1) | 1;
    for (int i = 0; i < hashes; ++i, hash = hash * kMultiplier + step) visit(ScaleTo(hash, words), static_cast<int>(hash >> 3 & 63));
  }
};

}  // namespace deepreduce

#endif  // DEEPREDUCE_LIB_INDEX_BLOOM_BITS_H_
