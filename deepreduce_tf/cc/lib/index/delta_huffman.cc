#include "deepreduce_tf/cc/lib/index/delta_huffman.h"

#include "deepreduce_tf/cc/lib/index/classed_gaps.h"

namespace deepreduce {
namespace {

// One byte holds the gaps from 0 on, two bytes those that follow, and so on: no gap has two forms.
struct ByBytes {
  static constexpr int kSymbols = 4;
  static int Of(uint32_t gap) { return (gap >= Base(1)) + (gap >= Base(2)) + (gap >= Base(3)); }
  static int Bits(int symbol) { return 8 * symbol + 8; }
  static constexpr uint64_t Base(int symbol) { return 0x01010100u & ((uint64_t{1} << (8 * symbol + 1)) - 1); }
};

using Coder = ClassedGaps<ByBytes>;

}  // namespace

const IndexCodec kDeltaHuffman = {Coder::Encode, Coder::Decode, Coder::Length};

}  // namespace deepreduce
