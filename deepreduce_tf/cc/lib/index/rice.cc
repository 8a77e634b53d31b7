#include "deepreduce_tf/cc/lib/index/rice.h"

#include <algorithm>

#include "deepreduce_tf/cc/lib/bits/bit_stream.h"
#include "deepreduce_tf/cc/lib/index/gaps.h"

namespace deepreduce {
namespace {

constexpr int kMaxParameter = 30;
constexpr uint8_t kComplement = 1 << 6;

// Three sums that give the length under b and its neighbours. From q = g >> b one has g >> (b + 1) = (q - q mod 2) / 2, and
// g >> (b - 1) = 2 q + the top bit of the remainder. 32 bits hold them: the gaps of a support sum to less than 2^31.
struct Sums {
  uint32_t quotients = 0;
  uint32_t odd = 0;  // quotients that are odd
  uint32_t top = 0;  // remainders with their top bit set

  // b - 1 is no longer than b.
  bool TooLarge(int b, uint64_t n) const { return b > 0 && uint64_t{quotients} + top <= n; }
  // b + 1 is shorter than b.
  bool TooSmall(uint64_t n) const { return uint64_t{quotients} + odd > 2 * n; }
};

// The top bit of a remainder of b bits; 0 when there is none.
uint32_t TopBit(uint32_t gap, int b) { return (gap & ((1u << b) - 1)) >> std::max(b - 1, 0); }

Sums SumGaps(const Gaps& gaps, Span<const int32_t> indices, int64_t size, int b) {
  Sums sums;
  ForEachGap(gaps, indices, size, [&, b](uint32_t gap) {
    sums.quotients += gap >> b;
    sums.odd += gap >> b & 1;
    sums.top += TopBit(gap, b);
  });
  return sums;
}

struct Choice {
  int b;
  size_t length;  // of the whole code, in bytes
};

Choice Choose(const Gaps& gaps, Span<const int32_t> indices, int64_t size) {
  // For geometric gaps the best b is the smallest with 2^b >= mean * -ln((sqrt 5 - 1) / 2) (Kiely, JPL, 2004); then walk, since the
  // length is convex in b.
  const double mean = static_cast<double>(gaps.room) / static_cast<double>(gaps.n);
  int b = 0;
  while (b < kMaxParameter && static_cast<double>(1u << b) < 0.4812 * mean) ++b;
  Sums sums = SumGaps(gaps, indices, size, b);
  while (sums.TooLarge(b, gaps.n)) sums = SumGaps(gaps, indices, size, --b);
  while (sums.TooSmall(gaps.n)) sums = SumGaps(gaps, indices, size, ++b);
  const uint64_t bits = sums.quotients + gaps.n * static_cast<uint64_t>(1 + b);
  return {b, static_cast<size_t>(1 + (bits + 7) / 8)};
}

size_t Length(const Segment& segment, Span<const int32_t> indices) {
  return Choose(Gaps(indices.size, segment.size), indices, segment.size).length;
}

size_t Encode(const Segment& segment, Span<const int32_t> indices, Span<uint8_t> code) {
  const Gaps gaps(indices.size, segment.size);
  const auto [b, length] = Choose(gaps, indices, segment.size);
  if (length >= code.size) return kNotShorter;
  code[0] = static_cast<uint8_t>(b | (gaps.complement ? kComplement : 0));
  BitWriter writer(code.data + 1);
  ForEachGap(gaps, indices, segment.size, [&writer, b = b](uint32_t gap) {
    uint32_t zeros = gap >> b;
    for (; zeros > kMaxField - 1 - kMaxParameter; zeros -= std::min(zeros, 32u)) writer.Put(0, static_cast<int>(std::min(zeros, 32u)));
    const uint64_t remainder = gap & ((1u << b) - 1);
    writer.Put((remainder << 1 | 1) << zeros, static_cast<int>(zeros) + 1 + b);
  });
  writer.Finish();
  return length;
}

template <class Sink>
class GapDecoder {
 public:
  GapDecoder(Span<const uint8_t> code, int b, const Gaps& gaps, Sink sink)
      : code_(code), limits_{b, std::max(b - 1, 0), (1u << b) - 1, gaps.n, gaps.room}, state_{sink}, reader_(code, 8) {}

  Error Run() {
    const auto& [b, top, mask, n, room] = limits_;
    while (state_.j < n) {
      if (!RunFast() || (state_.j < n && !ReadOne())) {
        return {reader_.past_end() ? "Rice: code ends inside a gap" : "Rice: gaps lead beyond the size", reader_.byte()};
      }
    }
    state_.sink.Finish(n, state_.total);
    if (Error error = reader_.Finish(); !error.ok()) return error;
    if (state_.sums.TooLarge(b, n) || state_.sums.TooSmall(n)) return {"Rice: another parameter is better", 0};
    return {};
  }

 private:
  struct State {
    struct Limits {
      int b;
      int top;  // place of the remainder's top bit
      uint32_t mask;
      uint64_t n;
      uint64_t room;
    };
    Sink sink;
    uint64_t j = 0;      // gaps read
    uint64_t total = 0;  // their sum
    Sums sums = {};

    // False when the gap does not fit.
    bool Take(const Limits& limits, uint64_t quotient, uint32_t remainder) {
      const uint64_t before = total;
      total += quotient << limits.b | remainder;
      if (total > limits.room) return false;
      sums.quotients += static_cast<uint32_t>(quotient);
      sums.odd += quotient & 1;
      sums.top += remainder >> limits.top;
      sink.Take(j++, before, total);
      return true;
    }
  };

  // Codes that lie within one word, as long as whole words can be loaded. The word is refilled with as many whole bytes as fit, and
  // loads do not wait for the code before (Giesen, "Reading bits in far too many ways", 2018). Locals, so that they stay in registers.
  bool RunFast() {
    size_t byte = static_cast<size_t>(reader_.byte());
    if (byte + 16 > code_.size) return true;
    const uint8_t* const bytes = code_.data;
    const size_t last = code_.size - 8;
    const int start = static_cast<int>(reader_.position() & 7);
    uint64_t word = LoadWord(bytes + byte) >> start;
    byte += 7;
    int left = 56 - start;
    State state = state_;
    const typename State::Limits limits = limits_;
    bool fits = true;
    while (state.j < limits.n && byte <= last) {
      word |= LoadWord(bytes + byte) << left;
      byte += static_cast<size_t>((63 - left) >> 3);
      left |= 56;
      const int zeros = __builtin_ctzll(word | uint64_t{1} << 63);
      const int length = zeros + 1 + limits.b;
      if (length > left) break;
      const uint32_t remainder = static_cast<uint32_t>(word >> zeros >> 1) & limits.mask;
      word >>= length;
      left -= length;
      fits = state.Take(limits, static_cast<uint64_t>(zeros), remainder);
      if (!fits) break;
    }
    state_ = state;
    reader_.Seek(8 * byte - static_cast<uint64_t>(left));
    return fits;
  }

  // Any code, anywhere.
  bool ReadOne() {
    constexpr uint64_t kField = (uint64_t{1} << kMaxField) - 1;
    uint64_t quotient = 0;
    uint64_t field = reader_.Peek() & kField;
    for (; field == 0 && !reader_.past_end(); field = reader_.Peek() & kField) {
      quotient += kMaxField;
      reader_.Skip(kMaxField);
    }
    if (field == 0) return false;
    const int zeros = __builtin_ctzll(field);
    quotient += static_cast<uint64_t>(zeros);
    reader_.Skip(static_cast<uint64_t>(zeros) + 1);
    const uint32_t remainder = static_cast<uint32_t>(reader_.Peek()) & limits_.mask;
    reader_.Skip(static_cast<uint64_t>(limits_.b));
    // The first comparison keeps the shift in Take within 64 bits.
    return !reader_.past_end() && quotient <= limits_.room && state_.Take(limits_, quotient, remainder);
  }

  const Span<const uint8_t> code_;
  const typename State::Limits limits_;
  State state_;
  BitReader reader_;
};

Error Decode(const Segment& segment, Span<const uint8_t> code, Span<int32_t> indices) {
  if (code.empty()) return {"Rice: empty code", 0};
  const Gaps gaps(indices.size, segment.size);
  const int b = code[0] & 0x3f;
  if (b > kMaxParameter || code[0] >> 7 != 0) return {"Rice: unknown parameter bits", 0};
  if (((code[0] & kComplement) != 0) != gaps.complement) return {"Rice: wrong complement bit", 0};
  if (gaps.complement) return GapDecoder<ComplementSink>(code, b, gaps, {indices.data, indices.size}).Run();
  return GapDecoder<SupportSink>(code, b, gaps, {indices.data}).Run();
}

}  // namespace

const IndexCodec kRice = {Encode, Decode, Length};

}  // namespace deepreduce
