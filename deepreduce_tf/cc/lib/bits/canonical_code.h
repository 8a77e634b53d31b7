// Canonical Huffman codes of at most 12 bits: docs/format.md, "Huffman codes".
#ifndef DEEPREDUCE_LIB_BITS_CANONICAL_CODE_H_
#define DEEPREDUCE_LIB_BITS_CANONICAL_CODE_H_

#include <cstddef>
#include <cstdint>

#include "deepreduce_tf/cc/lib/bits/bit_stream.h"
#include "deepreduce_tf/cc/lib/bits/error.h"
#include "deepreduce_tf/cc/lib/bits/span.h"

namespace deepreduce {

constexpr int kMaxCodeLength = 12;
// Stands for the length of a symbol that does not occur.
constexpr uint8_t kNoCode = kMaxCodeLength + 1;
constexpr size_t kMaxSymbols = 513;

// Lengths of least total, by package-merge. At least one count is not zero; there are at most kMaxSymbols.
void LengthsOfCounts(Span<const uint32_t> counts, uint8_t* lengths);

// A complete code as bytes tell it: the table of lengths.
uint64_t TableBits(Span<const uint8_t> lengths);
void WriteTable(Span<const uint8_t> lengths, BitWriter* writer);
// Total: gives an error, or lengths whose code is complete, neither over- nor under-subscribed.
Error ReadTable(BitReader* reader, Span<uint8_t> lengths);

struct CodeWord {
  uint16_t bits;  // in the order in which they are written, the first one lowest
  uint8_t length;
};

// The words of a complete code; those of symbols without one are left as they are.
void MakeWords(Span<const uint8_t> lengths, CodeWord* words);

// Finds the symbol whose word comes next, by one look at the next 12 bits.
class CodeTable {
 public:
  explicit CodeTable(Span<const uint8_t> lengths);

  struct Entry {
    uint16_t symbol;
    uint8_t length;
  };
  const Entry& operator[](uint64_t next) const { return entries_[next & mask_]; }

 private:
  Entry entries_[1 << kMaxCodeLength];
  uint64_t mask_;
};

}  // namespace deepreduce

#endif  // DEEPREDUCE_LIB_BITS_CANONICAL_CODE_H_
