// A counter-based generator: every number is a function of a key and a position, on every machine.
#ifndef DEEPREDUCE_LIB_BITS_RANDOM_H_
#define DEEPREDUCE_LIB_BITS_RANDOM_H_

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace deepreduce {

constexpr uint64_t kGolden = 0x9e3779b97f4a7c15ull;

// The finaliser of SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014).
inline uint64_t Mix(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

// Draw number `position` of the stream `key`.
inline uint64_t RandomBits(uint64_t key, uint64_t position) { return Mix(key + (position + 1) * kGolden); }

// A draw as a number below `end`.
inline uint64_t ScaleTo(uint64_t draw, uint64_t end) { return static_cast<uint64_t>((static_cast<unsigned __int128>(draw) * end) >> 64); }

// Draws of 32 bits from number `first` on, two from each of 64. `first` and N are even, so a pair never straddles two calls.
template <size_t N>
void RandomWords(uint64_t key, size_t first, uint32_t (&words)[N]) {
  static_assert(N % 2 == 0, "pairs");
  uint64_t pairs[N / 2];
  for (size_t i = 0; i < N / 2; ++i) pairs[i] = RandomBits(key, first / 2 + i);
  std::memcpy(words, pairs, sizeof words);
}

// The stream of one segment at one step: docs/format/index_codes.md, "Seeded support".
inline uint64_t StreamKey(uint64_t seed, uint64_t step, uint64_t segment) {
  return Mix(Mix(Mix(seed + kGolden) + step * kGolden) + segment * kGolden);
}

}  // namespace deepreduce

#endif  // DEEPREDUCE_LIB_BITS_RANDOM_H_
