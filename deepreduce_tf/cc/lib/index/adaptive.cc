#include "deepreduce_tf/cc/lib/index/adaptive.h"

#include <algorithm>

#include "deepreduce_tf/cc/lib/bits/buffer.h"
#include "deepreduce_tf/cc/lib/bits/leb128.h"
#include "deepreduce_tf/cc/lib/bits/range_coder.h"
#include "deepreduce_tf/cc/lib/index/adaptive_probability.h"
#include "deepreduce_tf/cc/lib/index/rice.h"

namespace deepreduce {
namespace {

constexpr uint8_t kPlain = 0x80, kShaped = 0x81;  // the first byte; Rice's is below 0x80
constexpr int kPrior = 24;                        // places that a row or column has beforehand, in sixteenths
constexpr int64_t kMaxLines = 64;                 // for each place kept

// Where the nodes of the tree lie. A line is one row of one kernel position; without structure all places are one line.
struct Layout {
  bool shaped;
  int64_t rows, columns, lines;
  int top;  // Nodes of this level, of 2^top columns each, are asked for in turn. Nodes of level 0 are places.

  // Rows and columns that do not fit the size, or are too many to learn from so few places, count as no structure.
  Layout(int64_t size, int64_t count, int64_t wanted_rows, int64_t wanted_columns) : rows(1), columns(size), lines(1), top(0) {
    const bool fits = wanted_columns >= 2 && wanted_columns <= size / 2 && size % wanted_columns == 0 && wanted_rows >= 1 &&
                      size / wanted_columns % wanted_rows == 0;
    shaped = fits && size / wanted_columns <= kMaxLines * count && wanted_columns <= kMaxLines * count;
    if (shaped) {
      rows = wanted_rows;
      columns = wanted_columns;
      lines = size / columns;
    }
    while (count << (top + 2) <= size && int64_t{1} << top < columns) ++top;
  }
};

// What is expected of a row: `kept` places so far, of `expected` (in 2^-16) by their columns alone.
struct Row {
  uint64_t kept = 0, expected = 0;
};

// Asks which nodes of the tree hold kept places, from the tops down to the places, with the chance of each answer. Encoder and decoder take
// the same walk; `Asker` is what writes or reads the answers:
//   bool Ask(AdaptiveProbability* chance, int64_t begin, int64_t end)  whether any place of [begin, end) is kept
//   void Keep(int64_t place)                               a place that is
//   bool Lost()                                            whether to go on is pointless
template <class Asker>
class Walk {
 public:
  Walk(const Layout& layout, int64_t size, size_t count, Asker* asker)
      : layout_(layout), asker_(asker), density_((uint64_t{count} << 32) / static_cast<uint64_t>(size)), open_(count) {}

  // False when memory is out.
  bool Prepare() {
    if (!layout_.shaped) return true;
    size_t nodes = 0;
    for (int level = 0; level <= layout_.top; ++level) {
      first_[level] = nodes;
      nodes += static_cast<size_t>((layout_.columns - 1) >> level) + 1;
    }
    seen_ = AllocateZeros<uint32_t>(nodes);
    rows_ = AllocateZeros<Row>(static_cast<size_t>(layout_.rows));
    return seen_ != nullptr && rows_ != nullptr;
  }

  // False when the last node did not bring the last kept place.
  bool Run() {
    Row whole;
    for (int64_t line = 0; line < layout_.lines && open_ > 0 && !asker_->Lost(); ++line) {
      base_ = line * layout_.columns;
      EstimateColumns();
      RunLine(layout_.shaped ? &rows_[line % layout_.rows] : &whole);
    }
    return open_ == 0;
  }

 private:
  void RunLine(Row* row) {
    const int top = layout_.top;
    for (int64_t node = 0; node << top < layout_.columns && open_ > 0; ++node) {
      if (layout_.shaped) {
        activity_ = std::min<uint64_t>(((16 * row->kept + kPrior) << 16) / ((row->expected >> 12) + kPrior), kMaxActivity);
        row->expected += Column(top, node) >> 16;
      }
      if (!asker_->Ask(&tops_.At(Log(Expected(top, node)) - kUnit), Begin(top, node), Begin(top, node + 1))) continue;
      --open_;
      const size_t before = kept_;
      Descend(top, node);
      row->kept += kept_ - before;
    }
  }

  // A node that holds kept places.
  void Descend(int level, int64_t node) {
    if (layout_.shaped) ++seen_[first_[level] + static_cast<size_t>(node)];
    if (level-- == 0) {
      ++kept_;
      return asker_->Keep(base_ + node);
    }
    const int64_t left = 2 * node, right = left + 1;
    if (right << level >= layout_.columns) return Descend(level, left);
    const uint64_t in_left = Expected(level, left), in_right = Expected(level, right);
    const int64_t begin = Begin(level, left), middle = Begin(level, right), end = Begin(level, right + 1);
    const int odds = Log(in_left) + Log(kOne + in_left + in_right) - Log(in_right) - kUnit;
    const bool go_left = asker_->Ask(&lefts_.At(odds), begin, middle);
    // Where the left half holds none, the right one must. Where every place is spoken for, no other node holds any.
    const bool go_right = !go_left || (open_ > 0 && asker_->Ask(&rights_.At(Log(in_right) - kUnit), middle, end));
    open_ -= go_left && go_right;
    if (go_left) Descend(level, left);
    if (go_right) Descend(level, right);
  }

  int64_t Begin(int level, int64_t node) const { return base_ + std::min(node << level, layout_.columns); }

  // What a node of a level is expected to hold, in 2^-32, for each sixteenth of a place that it has shown: the same for the whole line.
  void EstimateColumns() {
    if (!layout_.shaped || estimated_ == kept_) return;
    estimated_ = kept_;
    for (int level = 0; level <= layout_.top; ++level) {
      const uint64_t share = (16 * uint64_t{kept_} << level) / static_cast<uint64_t>(layout_.columns);
      scales_[level] = (density_ << level) / (share + kPrior);
    }
  }

  // Places that a node is expected to hold by its columns alone, in 2^-32.
  uint64_t Column(int level, int64_t node) const {
    const uint64_t shown = 16 * uint64_t{seen_[first_[level] + static_cast<size_t>(node)]} + kPrior;
    return std::min<uint64_t>(shown * scales_[level], kMaxExpected);
  }

  // ... by its columns and its row. Never 0.
  uint64_t Expected(int level, int64_t node) const {
    if (!layout_.shaped) return (density_ << level) | 1;
    return ((Column(level, node) >> 8) * activity_ >> 8) | 1;
  }

  static constexpr uint64_t kOne = uint64_t{1} << 32, kMaxExpected = kOne << 8, kMaxActivity = 1 << 22;
  static constexpr int kUnit = 32 * 16;  // Log(kOne)

  const Layout layout_;
  Asker* const asker_;
  const uint64_t density_;       // in 2^-32
  uint64_t open_;                // kept places of which no node is known yet
  size_t kept_ = 0;              // places
  size_t estimated_ = SIZE_MAX;  // kept_ when scales_ were made
  int64_t base_ = 0;             // first place of the line
  uint64_t activity_ = 1 << 16;  // of the row: kept by expected, in 2^-16
  uint64_t scales_[32] = {};     // by level
  size_t first_[32] = {};        // by level: its first node in seen_
  Buffer<uint32_t> seen_;        // lines in which a node held kept places
  Buffer<Row> rows_;
  ProbabilityTable tops_, lefts_, rights_;
};

class Writer {
 public:
  Writer(Span<const int32_t> indices, Span<uint8_t> room) : next_(indices.begin()), end_(indices.end()), coder_(room) {}

  bool Ask(AdaptiveProbability* chance, int64_t begin, int64_t end) {
    const int32_t* place = next_;
    while (place != end_ && *place < begin) ++place;
    const bool answer = place != end_ && *place < end;
    coder_.Put(answer, chance->probability());
    chance->Learn(answer);
    return answer;
  }
  void Keep(int64_t) { ++next_; }
  bool Lost() const { return coder_.full(); }
  RangeEncoder& coder() { return coder_; }

 private:
  const int32_t* next_;
  const int32_t* end_;
  RangeEncoder coder_;
};

class Reader {
 public:
  Reader(Span<const uint8_t> code, int32_t* out) : out_(out), coder_(code) {}

  bool Ask(AdaptiveProbability* chance, int64_t, int64_t) {
    const bool answer = coder_.Get(chance->probability());
    chance->Learn(answer);
    return answer;
  }
  void Keep(int64_t place) { *out_++ = static_cast<int32_t>(place); }
  bool Lost() const { return false; }
  const RangeDecoder& coder() const { return coder_; }

 private:
  int32_t* out_;
  RangeDecoder coder_;
};

// The end of the header.
uint8_t* PutHeader(const Layout& layout, uint8_t* out) {
  *out++ = layout.shaped ? kShaped : kPlain;
  if (!layout.shaped) return out;
  return PutVarint(PutVarint(out, static_cast<uint32_t>(layout.rows)), static_cast<uint32_t>(layout.columns));
}

// The length of the tree's code, with its header, when that is below code.size; otherwise kNotShorter.
size_t EncodeTree(const Segment& segment, Span<const int32_t> indices, Span<uint8_t> code) {
  const Layout layout(segment.size, static_cast<int64_t>(indices.size), segment.rows, segment.columns);
  uint8_t header[11];
  const size_t start = static_cast<size_t>(PutHeader(layout, header) - header);
  if (start >= code.size) return kNotShorter;
  std::copy(header, header + start, code.begin());
  Writer writer(indices, code.subspan(start, code.size - start));
  Walk<Writer> walk(layout, segment.size, indices.size, &writer);
  if (!walk.Prepare()) return kNotShorter;
  walk.Run();
  const size_t length = static_cast<size_t>(writer.coder().Finish() - code.begin());
  return length < code.size && !writer.Lost() ? length : kNotShorter;
}

// Whether a support is told raw must not depend on its shape, which no decoder of raw indices knows.
size_t Length(const Segment& segment, Span<const int32_t> indices) { return kRice.length(segment, indices); }

size_t Encode(const Segment& segment, Span<const int32_t> indices, Span<uint8_t> code) {
  const size_t rice = kRice.length(segment, indices);
  const size_t length = EncodeTree(segment, indices, code.subspan(0, std::min(rice, code.size)));
  return length != kNotShorter ? length : kRice.encode(segment, indices, code);
}

Error DecodeTree(const Segment& segment, Span<const uint8_t> code, Span<int32_t> indices) {
  uint32_t rows = 1, columns = 1;
  size_t start = 1;
  const bool shaped = code[0] == kShaped;
  if (!shaped && code[0] != kPlain) return {"Adaptive: unknown first byte", 0};
  if (shaped && !(GetVarint(code, &start, &rows) && GetVarint(code, &start, &columns))) {
    return {"Adaptive: a malformed number of rows or columns", static_cast<int64_t>(start)};
  }
  const Layout layout(segment.size, static_cast<int64_t>(indices.size), rows, columns);
  if (layout.shaped != shaped) return {"Adaptive: rows and columns that do not fit the size and the count", 1};
  Reader reader(code.subspan(start, code.size - start), indices.data);
  Walk<Reader> walk(layout, segment.size, indices.size, &reader);
  if (!walk.Prepare()) return {"Adaptive: out of memory", 0};
  if (!walk.Run()) return {"Adaptive: fewer places than the count", static_cast<int64_t>(start + reader.coder().position())};
  if (Error error = reader.coder().Finish(); !error.ok()) return {error.name, static_cast<int64_t>(start) + error.position};
  if (kRice.length(segment, indices) <= code.size) return {"Adaptive: Rice is as short", 0};
  return {};
}

Error Decode(const Segment& segment, Span<const uint8_t> code, Span<int32_t> indices) {
  if (code.empty()) return {"Adaptive: empty code", 0};
  return code[0] < kPlain ? kRice.decode(segment, code, indices) : DecodeTree(segment, code, indices);
}

}  // namespace

const IndexCodec kAdaptive = {Encode, Decode, Length};

}  // namespace deepreduce
