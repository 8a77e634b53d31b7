// Probabilities of yes-or-no questions that are learnt from the answers: docs/format/index_codes.md, "Adaptive".
#ifndef DEEPREDUCE_LIB_INDEX_ADAPTIVE_PROBABILITY_H_
#define DEEPREDUCE_LIB_INDEX_ADAPTIVE_PROBABILITY_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>

namespace deepreduce {

constexpr uint32_t kFirstSeen = 12, kMaxSeen = 255;

// What share of a surprise is learnt after so many answers, in 2^-16.
constexpr std::array<uint16_t, kMaxSeen + 1> LearningRates() {
  std::array<uint16_t, kMaxSeen + 1> rates = {};
  for (uint32_t seen = kFirstSeen; seen <= kMaxSeen; ++seen) rates[seen] = static_cast<uint16_t>((1u << 17) / (2 * seen + 3));
  return rates;
}
inline constexpr std::array<uint16_t, kMaxSeen + 1> kRates = LearningRates();

// How likely a "yes" is: the mean of the answers so far, and when they are many, of the latest ones.
struct AdaptiveProbability {
  static constexpr uint32_t kOne = 1u << 28;
  uint32_t yes = 0;  // in 2^-28
  uint32_t seen = kFirstSeen;

  uint32_t probability() const { return yes >> 12 | 1; }  // in 2^-16
  void Learn(bool answer) {
    const uint64_t rate = kRates[seen];
    yes = answer ? yes + static_cast<uint32_t>((kOne - yes) * rate >> 16) : yes - static_cast<uint32_t>(yes * rate >> 16);
    seen += seen < kMaxSeen;
  }
};

// log2 in sixteenths, linear between powers of two. x > 0.
inline int Log(uint64_t x) {
  const int high = 63 - __builtin_clzll(x);
  return high << 4 | static_cast<int>((high >= 4 ? x >> (high - 4) : x << (4 - high)) & 15);
}

// One chance for each octave of the odds that a model gives. They begin at the model's word and learn what it is worth.
class ProbabilityTable {
 public:
  ProbabilityTable() {
    for (int octave = -kOctaves; octave <= kOctaves; ++octave) {
      const uint64_t odds = uint64_t{1} << std::abs(octave);
      const uint64_t part = octave < 0 ? 1 : odds;
      chances_[octave + kOctaves].yes = static_cast<uint32_t>(AdaptiveProbability::kOne * part / (odds + 1));
    }
  }

  // `odds`: their log2 in sixteenths, above -2048. Rounded to the nearest octave.
  AdaptiveProbability& At(int odds) { return chances_[std::clamp((odds + 8 + 16 * 128) / 16 - 128, -kOctaves, kOctaves) + kOctaves]; }

 private:
  static constexpr int kOctaves = 14;
  AdaptiveProbability chances_[2 * kOctaves + 1];
};

}  // namespace deepreduce

#endif  // DEEPREDUCE_LIB_INDEX_ADAPTIVE_PROBABILITY_H_
