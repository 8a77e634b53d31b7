#include "deepreduce_tf/cc/lib/index/huffman.h"

#include "deepreduce_tf/cc/lib/index/classed_gaps.h"

namespace deepreduce {
namespace {

// Class c holds the 2^c gaps from 2^c - 1 on.
struct ByBits {
  static constexpr int kSymbols = 31;
  static int Of(uint32_t gap) { return BitWidth(uint64_t{gap} + 1) - 1; }
  static int Bits(int symbol) { return symbol; }
  static uint64_t Base(int symbol) { return (uint64_t{1} << symbol) - 1; }
};

using Coder = ClassedGaps<ByBits>;

}  // namespace

const IndexCodec kHuffman = {Coder::Encode, Coder::Decode, Coder::Length};

}  // namespace deepreduce
