#include "deepreduce_tf/cc/lib/value/sketch_ml.h"

#include <algorithm>

#include "deepreduce_tf/cc/lib/bits/canonical_code.h"
#include "deepreduce_tf/cc/lib/bits/float_bits.h"
#include "deepreduce_tf/cc/lib/value/magnitude_cells.h"

namespace deepreduce {
namespace {

constexpr int kMaxBuckets = 256;
// Means are bfloat16, here the high halves of their bits: from 2^-126 to the largest finite one.
constexpr int kSmallestMean = 0x0080;
constexpr int kLargestMean = 0x7f7f;
constexpr int kMeanBits = 15;
// A bucket costs about 15 bits, which fewer values than these would not repay.
constexpr uint64_t kValuesOfBucket = 8;
constexpr uint64_t kFewestBuckets = 4;

// What comes before the values: the buckets, and which symbols there are. Symbol 0 is the zero where there is one, then each bucket has
// two, positive and negative.
struct Sketch {
  bool zeros = false;
  int buckets = 0;
  int means[kMaxBuckets];
  uint8_t lengths[kMaxSymbols];

  size_t symbols() const { return static_cast<size_t>(zeros + 2 * buckets); }
  Span<const uint8_t> table() const { return {lengths, symbols()}; }

  // Bits of the largest difference of two neighbouring means, less 1.
  int DifferenceWidth() const {
    int width = 0;
    for (int j = 1; j < buckets; ++j) width = std::max(width, BitWidth(static_cast<uint64_t>(means[j] - means[j - 1] - 1)));
    return width;
  }

  uint64_t Bits() const {
    const int of_means = buckets == 0 ? 0 : kMeanBits + 4 + (buckets - 1) * DifferenceWidth();
    return static_cast<uint64_t>(9 + 1 + of_means) + TableBits(table());
  }

  void Write(BitWriter* writer) const {
    writer->Put(static_cast<uint64_t>(buckets), 9);
    writer->Put(zeros, 1);
    if (buckets != 0) {
      const int width = DifferenceWidth();
      writer->Put(static_cast<uint64_t>(means[0]), kMeanBits);
      writer->Put(static_cast<uint64_t>(width), 4);
      for (int j = 1; j < buckets; ++j) writer->Put(static_cast<uint64_t>(means[j] - means[j - 1] - 1), width);
    }
    WriteTable(table(), writer);
  }

  Error Read(BitReader* reader);
  Error ReadMeans(BitReader* reader);

  // The value of each symbol.
  void MakeValues(float* values) const {
    if (zeros) *values++ = 0.0f;
    for (int j = 0; j < buckets; ++j) {
      *values++ = FloatOf(static_cast<uint32_t>(means[j]) << 16);
      *values++ = FloatOf(static_cast<uint32_t>(means[j]) << 16 | 0x80000000u);
    }
  }
};

int TakeField(BitReader* reader, int width) {
  const uint64_t field = reader->Peek() & ((uint64_t{1} << width) - 1);
  reader->Skip(static_cast<uint64_t>(width));
  return static_cast<int>(field);
}

Error Sketch::ReadMeans(BitReader* reader) {
  means[0] = TakeField(reader, kMeanBits);
  const int width = TakeField(reader, 4);
  for (int j = 1; j < buckets; ++j) means[j] = means[j - 1] + 1 + TakeField(reader, width);
  if (means[0] < kSmallestMean || means[buckets - 1] > kLargestMean) return {"SketchML: mean out of range", 1};
  if (width != DifferenceWidth()) return {"SketchML: differences of means are wider than needed", 3};
  return {};
}

Error Sketch::Read(BitReader* reader) {
  buckets = TakeField(reader, 9);
  zeros = TakeField(reader, 1) != 0;
  if (buckets > kMaxBuckets) return {"SketchML: too many buckets", 0};
  if (symbols() == 0) return {"SketchML: neither buckets nor zeros", 0};
  if (buckets != 0) {
    if (Error error = ReadMeans(reader); !error.ok()) return error;
  }
  if (Error error = ReadTable(reader, {lengths, symbols()}); !error.ok()) return error;
  const uint8_t* next = lengths;
  bool empty = zeros && *next++ == kNoCode;
  for (int j = 0; j < buckets; ++j, next += 2) empty |= next[0] == kNoCode && next[1] == kNoCode;
  if (empty) return {"SketchML: bucket without values", reader->byte()};
  return {};
}

int RoundMean(double mean) {
  const uint32_t bits = BitsOf(static_cast<float>(mean));
  return std::clamp(static_cast<int>((bits + 0x7fffu + (bits >> 16 & 1)) >> 16), kSmallestMean, kLargestMean);
}

// The buckets of the magnitudes; those whose means round to the same are one.
void MakeBuckets(int bits, MagnitudeCells* cells, Sketch* sketch) {
  int most = 1 << bits;
  while (static_cast<uint64_t>(most) > std::max(cells->count() / kValuesOfBucket, kFewestBuckets)) most /= 2;
  cells->PlaceBuckets(most);
  double means[kMaxBuckets];
  uint32_t merged[kMaxBuckets];
  const int n = cells->MeansOfBuckets(means);
  for (int j = 0; j < n; ++j) {
    const int mean = RoundMean(means[j]);
    if (j == 0 || mean != sketch->means[sketch->buckets - 1]) sketch->means[sketch->buckets++] = mean;
    merged[j] = static_cast<uint32_t>(sketch->buckets - 1);
  }
  for (MagnitudeCell& cell : cells->cells()) cell.bucket = merged[std::min(cell.bucket, static_cast<uint32_t>(n - 1))];
}

size_t Encode(const ValueOptions& options, Span<const float> values, Span<uint8_t> code, float* decoded) {
  MagnitudeCells cells;
  if (!cells.Fill(values)) return kNotShorter;
  Sketch sketch;
  sketch.zeros = cells.zeros() != 0;
  if (cells.count() != 0) MakeBuckets(options.bits, &cells, &sketch);
  uint32_t counts[kMaxSymbols] = {cells.zeros()};
  uint32_t* const of_buckets = counts + sketch.zeros;
  for (const MagnitudeCell& cell : cells.cells()) {
    of_buckets[2 * cell.bucket] += cell.count - cell.negative;
    of_buckets[2 * cell.bucket + 1] += cell.negative;
  }
  LengthsOfCounts({counts, sketch.symbols()}, sketch.lengths);
  uint64_t bits = sketch.Bits();
  for (size_t s = 0; s < sketch.symbols(); ++s) bits += uint64_t{counts[s]} * sketch.lengths[s];
  const size_t length = static_cast<size_t>((bits + 7) / 8);
  if (length >= code.size) return kNotShorter;

  BitWriter writer(code.data);
  sketch.Write(&writer);
  CodeWord words[kMaxSymbols];
  float of_symbols[kMaxSymbols];
  MakeWords(sketch.table(), words);
  sketch.MakeValues(of_symbols);
  for (size_t i = 0; i < values.size; ++i) {
    const int32_t magnitude = MagnitudeBits(values[i]);
    uint32_t symbol = 0;
    if (magnitude >= kSmallestNormalBits) symbol = sketch.zeros + 2 * cells.Of(magnitude).bucket + (BitsOf(values[i]) >> 31);
    writer.Put(words[symbol].bits, words[symbol].length);
    decoded[i] = of_symbols[symbol];
  }
  writer.Finish();
  return length;
}

Error Decode(const ValueOptions&, Span<const uint8_t> code, Span<float> values) {
  BitReader reader(code);
  Sketch sketch;
  if (Error error = sketch.Read(&reader); !error.ok()) return error;
  float of_symbols[kMaxSymbols];
  sketch.MakeValues(of_symbols);
  const CodeTable table(sketch.table());
  size_t i = 0;
  for (constexpr size_t kTogether = kMaxField / kMaxCodeLength; i + kTogether <= values.size; i += kTogether) {
    uint64_t word = reader.Peek();
    uint64_t used = 0;
    for (size_t k = 0; k < kTogether; ++k) {
      const CodeTable::Entry entry = table[word];
      word >>= entry.length;
      used += entry.length;
      values[i + k] = of_symbols[entry.symbol];
    }
    reader.Skip(used);
  }
  for (; i < values.size; ++i) {
    const CodeTable::Entry entry = table[reader.Peek()];
    values[i] = of_symbols[entry.symbol];
    reader.Skip(entry.length);
  }
  return reader.Finish();
}

}  // namespace

const ValueCodec kSketchML = {Encode, Decode};

}  // namespace deepreduce
