#include "deepreduce_tf/cc/lib/bits/canonical_code.h"

#include <algorithm>

#include "deepreduce_tf/cc/lib/bits/gamma_code.h"

namespace deepreduce {
namespace {

// Kraft sums are counted in steps of the longest word.
constexpr uint32_t kComplete = 1u << kMaxCodeLength;

// A length follows the one before as a number of 1 to 14, in gamma code: no change, then up and down by 1, 2, …, modulo 14.
constexpr int kModulus = kNoCode + 1;
constexpr int kMaxZeros = 3;  // of the gamma code of such a number

int NumberOfChange(int before, int length) {
  const int change = (length - before + kModulus) % kModulus;
  if (change == 0) return 1;
  return 2 * change <= kModulus ? 2 * change : 2 * (kModulus - change) + 1;
}

// Calls visit(number) for each number of the table, which ends where the code is complete.
template <class Visit>
void ForEachNumber(Span<const uint8_t> lengths, Visit visit) {
  uint32_t sum = 0;
  int before = kNoCode;
  for (size_t s = 0; sum < kComplete; before = lengths[s++]) {
    visit(NumberOfChange(before, lengths[s]));
    if (lengths[s] != kNoCode) sum += kComplete >> lengths[s];
  }
}

uint16_t Reverse(uint32_t bits, int length) {
  uint32_t reversed = 0;
  for (int k = 0; k < length; ++k) reversed |= (bits >> k & 1) << (length - 1 - k);
  return static_cast<uint16_t>(reversed);
}

}  // namespace

void LengthsOfCounts(Span<const uint32_t> counts, uint8_t* lengths) {
  uint64_t keys[kMaxSymbols];  // count above, symbol below
  size_t m = 0;
  for (size_t s = 0; s < counts.size; ++s) {
    lengths[s] = kNoCode;
    if (counts[s] != 0) keys[m++] = uint64_t{counts[s]} << 10 | s;
  }
  std::sort(keys, keys + m);
  // Larmore, Hirschberg, "A fast algorithm for optimal length-limited Huffman codes", Journal of the ACM 37, 1990.
  uint64_t lists[2][2 * kMaxSymbols];
  bool is_pair[kMaxCodeLength][2 * kMaxSymbols];
  size_t size = 0;  // of the list before
  for (int k = 0; k < kMaxCodeLength; ++k) {
    const uint64_t* before = lists[(k & 1) ^ 1];
    uint64_t* list = lists[k & 1];
    size_t symbol = 0, pair = 0, i = 0;
    for (; symbol < m || pair + 1 < size; ++i) {
      const uint64_t sum = pair + 1 < size ? before[pair] + before[pair + 1] : UINT64_MAX;
      is_pair[k][i] = symbol == m || sum < keys[symbol] >> 10;
      list[i] = is_pair[k][i] ? sum : keys[symbol] >> 10;
      ++(is_pair[k][i] ? pair : symbol);
      pair += is_pair[k][i];
    }
    size = i;
  }
  for (size_t i = 0; i < m; ++i) lengths[keys[i] & 1023] = 0;
  size_t taken = 2 * m - 2;
  for (int k = kMaxCodeLength; k-- > 0;) {
    const size_t pairs = static_cast<size_t>(std::count(is_pair[k], is_pair[k] + taken, true));
    for (size_t i = 0; i < taken - pairs; ++i) ++lengths[keys[i] & 1023];
    taken = 2 * pairs;
  }
}

uint64_t TableBits(Span<const uint8_t> lengths) {
  uint64_t bits = 0;
  ForEachNumber(lengths, [&](int number) { bits += static_cast<uint64_t>(GammaBits(static_cast<uint64_t>(number))); });
  return bits;
}

void WriteTable(Span<const uint8_t> lengths, BitWriter* writer) {
  ForEachNumber(lengths, [&](int number) { PutGamma(static_cast<uint64_t>(number), writer); });
}

Error ReadTable(BitReader* reader, Span<uint8_t> lengths) {
  uint32_t sum = 0;
  int before = kNoCode;
  size_t s = 0;
  for (; s < lengths.size && sum < kComplete; ++s) {
    const int64_t at = reader->byte();
    const uint64_t start = reader->position();
    const int number = static_cast<int>(GetGamma(reader, kMaxZeros));
    if (number == 0) reader->Seek(start + 2 * (kMaxZeros + 1) + 1);  // a larger number has as many bits or more
    if (number == 0 || number > kModulus)
      return reader->past_end() ? reader->Finish() : Error{"code table: length changes by too much", at};
    before = (before + (number % 2 == 0 ? number / 2 : kModulus - number / 2)) % kModulus;
    lengths[s] = static_cast<uint8_t>(before);
    if (before != kNoCode) sum += kComplete >> before;
  }
  if (sum > kComplete) return {"code table: more words than fit", reader->byte()};
  if (sum < kComplete) return {"code table: words are missing", reader->byte()};
  std::fill(lengths.begin() + s, lengths.end(), kNoCode);
  return {};
}

void MakeWords(Span<const uint8_t> lengths, CodeWord* words) {
  uint32_t first[kMaxCodeLength + 2] = {};  // number of words of each length, then the next word of each length
  for (uint8_t length : lengths) ++first[length];
  first[kNoCode] = 0;
  uint32_t next = 0;
  for (int length = 0; length <= kMaxCodeLength; ++length) {
    const uint32_t n = first[length];
    first[length] = next;
    next = (next + n) << 1;
  }
  for (size_t s = 0; s < lengths.size; ++s) {
    if (lengths[s] != kNoCode) words[s] = {Reverse(first[lengths[s]]++, lengths[s]), lengths[s]};
  }
}

CodeTable::CodeTable(Span<const uint8_t> lengths) {
  CodeWord words[kMaxSymbols];
  MakeWords(lengths, words);
  int longest = 0;
  for (uint8_t length : lengths) longest = length != kNoCode && length > longest ? length : longest;
  const size_t size = size_t{1} << longest;
  mask_ = size - 1;
  for (size_t s = 0; s < lengths.size; ++s) {
    if (lengths[s] == kNoCode) continue;
    for (size_t i = words[s].bits; i < size; i += size_t{1} << lengths[s]) entries_[i] = {static_cast<uint16_t>(s), lengths[s]};
  }
}

}  // namespace deepreduce
