// The gamma code of Elias ("Universal codeword sets and representations of the integers", 1975) of n >= 1: as many zero bits as n has bits
// below its highest one, that bit, and then those.
#ifndef DEEPREDUCE_LIB_BITS_GAMMA_CODE_H_
#define DEEPREDUCE_LIB_BITS_GAMMA_CODE_H_

#include <cstdint>

#include "deepreduce_tf/cc/lib/bits/bit_stream.h"

namespace deepreduce {

inline int GammaZeros(uint64_t n) { return BitWidth(n) - 1; }
inline int GammaBits(uint64_t n) { return 2 * GammaZeros(n) + 1; }

inline void PutGamma(uint64_t n, BitWriter* writer) {
  const int below = GammaZeros(n);
  int zeros = below;
  if (GammaBits(n) > kMaxField) {
    writer->Put(0, zeros);
    zeros = 0;
  }
  writer->Put(((n ^ uint64_t{1} << below) << 1 | 1) << zeros, zeros + 1 + below);
}

// Reads the number that comes next. 0 where it begins with more than max_zeros zeros, at most 30; these and a bit more are skipped then.
inline uint64_t GetGamma(BitReader* reader, int max_zeros) {
  uint64_t word = reader->Peek();
  const int zeros = __builtin_ctzll(word | uint64_t{1} << 63);
  reader->Skip(static_cast<uint64_t>(zeros) + 1);
  if (zeros > max_zeros) return 0;
  // Of the bits that Peek gives, these are beyond those it promises.
  word = 2 * zeros + 1 > kMaxField ? reader->Peek() : word >> zeros >> 1;
  reader->Skip(static_cast<uint64_t>(zeros));
  return uint64_t{1} << zeros | (word & ((uint64_t{1} << zeros) - 1));
}

}  // namespace deepreduce

#endif  // DEEPREDUCE_LIB_BITS_GAMMA_CODE_H_
