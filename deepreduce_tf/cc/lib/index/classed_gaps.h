// Gaps as a class in a Huffman code and the bits that tell which one of the class: what Huffman and DeltaHuffman have in common.
//
// `Classes` is a struct with the constant kSymbols, and for a class the number of its Bits(symbol), up to 32, and its lowest gap
// Base(symbol); Of(gap) is the class of a gap.
#ifndef DEEPREDUCE_LIB_INDEX_CLASSED_GAPS_H_
#define DEEPREDUCE_LIB_INDEX_CLASSED_GAPS_H_

#include <cstring>

#include "deepreduce_tf/cc/lib/bits/canonical_code.h"
#include "deepreduce_tf/cc/lib/index/gaps.h"
#include "deepreduce_tf/cc/lib/index/index_codec.h"

namespace deepreduce {

template <class Classes>
class ClassedGaps {
 public:
  static size_t Length(const Segment& segment, Span<const int32_t> indices) { return Plan(segment, indices).length; }

  static size_t Encode(const Segment& segment, Span<const int32_t> indices, Span<uint8_t> code) {
    const Plan plan(segment, indices);
    if (plan.length >= code.size) return kNotShorter;
    CodeWord words[Classes::kSymbols];
    MakeWords({plan.lengths, Classes::kSymbols}, words);
    BitWriter writer(code.data);
    WriteTable({plan.lengths, Classes::kSymbols}, &writer);
    ForEachGap(plan.gaps, indices, segment.size, [&](uint32_t gap) {
      const int symbol = Classes::Of(gap);
      const CodeWord& word = words[symbol];
      writer.Put((gap - Classes::Base(symbol)) << word.length | word.bits, word.length + Classes::Bits(symbol));
    });
    writer.Finish();
    return plan.length;
  }

  static Error Decode(const Segment& segment, Span<const uint8_t> code, Span<int32_t> indices) {
    const Gaps gaps(indices.size, segment.size);
    return gaps.complement ? Decode(gaps, code, ComplementSink{indices.data, indices.size}) : Decode(gaps, code, SupportSink{indices.data});
  }

 private:
  // All that follows from the gaps before the first one is written.
  struct Plan {
    Gaps gaps;
    uint8_t lengths[Classes::kSymbols];
    size_t length;  // of the whole code, in bytes

    Plan(const Segment& segment, Span<const int32_t> indices) : gaps(indices.size, segment.size) {
      uint32_t counts[Classes::kSymbols] = {};
      ForEachGap(gaps, indices, segment.size, [&](uint32_t gap) { ++counts[Classes::Of(gap)]; });
      LengthsOfCounts({counts, Classes::kSymbols}, lengths);
      uint64_t bits = TableBits({lengths, Classes::kSymbols});
      for (int s = 0; s < Classes::kSymbols; ++s) bits += uint64_t{counts[s]} * static_cast<uint64_t>(lengths[s] + Classes::Bits(s));
      length = static_cast<size_t>((bits + 7) / 8);
    }
  };

  template <class Sink>
  static Error Decode(const Gaps& gaps, Span<const uint8_t> code, Sink sink) {
    BitReader reader(code);
    uint8_t lengths[Classes::kSymbols], lengths_of_counts[Classes::kSymbols];
    if (Error error = ReadTable(&reader, {lengths, Classes::kSymbols}); !error.ok()) return error;
    const CodeTable table({lengths, Classes::kSymbols});
    uint32_t counts[Classes::kSymbols] = {};
    uint64_t total = 0;
    for (uint64_t j = 0; j < gaps.n; ++j) {
      const uint64_t word = reader.Peek();
      const auto& [symbol, length] = table[word];
      const int bits = Classes::Bits(symbol);
      const uint64_t before = total;
      total += (word >> length & ((uint64_t{1} << bits) - 1)) + Classes::Base(symbol);
      if (total > gaps.max_sum) return {"gaps lead beyond the size", reader.byte()};
      reader.Skip(static_cast<uint64_t>(length + bits));
      ++counts[symbol];
      sink.Take(j, before, total);
    }
    sink.Finish(gaps.n, total);
    if (Error error = reader.Finish(); !error.ok()) return error;
    LengthsOfCounts({counts, Classes::kSymbols}, lengths_of_counts);
    if (std::memcmp(lengths, lengths_of_counts, sizeof lengths) != 0) return {"code table: another one is better", 0};
    return {};
  }
};

}  // namespace deepreduce

#endif  // DEEPREDUCE_LIB_INDEX_CLASSED_GAPS_H_
