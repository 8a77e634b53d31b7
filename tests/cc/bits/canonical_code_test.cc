// Canonical Huffman codes: their lengths, words and tables.
#include "deepreduce_tf/cc/lib/bits/canonical_code.h"

#include <algorithm>

#include "tests/cc/check.h"
#include "tests/cc/samples.h"

namespace deepreduce::testing {
namespace {

using Counts = std::vector<uint32_t>;

Bytes Lengths(const Counts& counts) {
  Bytes lengths(counts.size());
  LengthsOfCounts(counts, lengths.data());
  return lengths;
}

uint64_t Total(const Counts& counts, const Bytes& lengths) {
  uint64_t total = 0;
  for (size_t s = 0; s < counts.size(); ++s) total += uint64_t{counts[s]} * (counts[s] == 0 ? 0 : lengths[s]);
  return total;
}

// Without a limit of length.
uint64_t HuffmanTotal(const Counts& counts) {
  std::vector<uint64_t> nodes;
  for (uint32_t count : counts) {
    if (count != 0) nodes.push_back(count);
  }
  uint64_t total = 0;
  while (nodes.size() > 1) {
    std::sort(nodes.rbegin(), nodes.rend());
    const uint64_t sum = nodes.back() + nodes[nodes.size() - 2];
    nodes.resize(nodes.size() - 2);
    nodes.push_back(sum);
    total += sum;
  }
  return total;
}

bool Complete(const Bytes& lengths) {
  uint32_t sum = 0;
  for (uint8_t length : lengths) sum += length == kNoCode ? 0 : 4096u >> length;
  return sum == 4096;
}

Counts SomeCounts(uint64_t seed) {
  Counts counts(1 + RandomBits(seed, 0) % (seed % 10 == 0 ? kMaxSymbols : 40));
  const uint64_t octaves = 1 + RandomBits(seed, 1) % 30;
  for (size_t s = 0; s < counts.size(); ++s) {
    const uint64_t draw = RandomBits(seed, 2 + s);
    counts[s] = static_cast<uint32_t>((draw >> 32) % (uint64_t{1} << draw % octaves)) * (draw >> 20 & 1);
  }
  counts[RandomBits(seed, 999) % counts.size()] = 1;
  return counts;
}

Error Read(const Bytes& bytes, size_t symbols, Bytes* lengths) {
  lengths->assign(symbols, 99);
  BitReader reader(bytes);
  const Error error = ReadTable(&reader, *lengths);
  return error.ok() && reader.past_end() ? reader.Finish() : error;
}

Bytes Table(const Bytes& lengths) {
  Bytes bytes(lengths.size() + 16);
  BitWriter writer(bytes.data());
  WriteTable(lengths, &writer);
  bytes.resize(static_cast<size_t>(writer.Finish() - bytes.data()));
  CHECK(bytes.size() == (TableBits(lengths) + 7) / 8);
  return bytes;
}

TEST("Lengths are complete, at most 12, and of least total where 12 are enough") {
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    const Counts counts = SomeCounts(seed);
    const Bytes lengths = Lengths(counts);
    CHECK(Complete(lengths));
    int longest = 0;
    for (size_t s = 0; s < counts.size(); ++s) {
      CHECK((lengths[s] == kNoCode) == (counts[s] == 0));
      if (counts[s] != 0) longest = std::max<int>(longest, lengths[s]);
    }
    CHECK(longest <= kMaxCodeLength);
    CHECK(Total(counts, lengths) >= HuffmanTotal(counts));
    CHECK(Total(counts, lengths) == HuffmanTotal(counts) || longest == kMaxCodeLength);
  }
}

TEST("Lengths are those of the format page, of equal counts the higher symbol's word the shorter") {
  CHECK(Lengths({5}) == (Bytes{0}));
  CHECK(Lengths({0, 5, 0}) == (Bytes{kNoCode, 0, kNoCode}));
  CHECK(Lengths({1, 9}) == (Bytes{1, 1}));
  CHECK(Lengths({1, 1, 1}) == (Bytes{2, 2, 1}));
  CHECK(Lengths({0, 0, 1, 3, 1, 1}) == (Bytes{kNoCode, kNoCode, 3, 1, 3, 2}));
  CHECK(Lengths(Counts(kMaxSymbols - 1, 7)) == Bytes(kMaxSymbols - 1, 9));
}

TEST("Counts up to the largest do not overflow") {
  const Bytes lengths = Lengths(Counts(kMaxSymbols, UINT32_MAX));
  CHECK(Complete(lengths));
  CHECK(*std::max_element(lengths.begin(), lengths.end()) == 10);
}

TEST("A table comes back, and one that ends early is refused") {
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    const Bytes lengths = Lengths(SomeCounts(seed));
    Bytes table = Table(lengths), read;
    CHECK(Read(table, lengths.size(), &read).ok());
    CHECK(read == lengths);
    table.pop_back();
    CHECK(!Read(table, lengths.size(), &read).ok());
  }
}

TEST("Any bytes are a complete code or an error") {
  for (uint64_t seed = 0; seed < 20000; ++seed) {
    Bytes bytes(1 + seed % 20), lengths;
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(RandomBits(seed, i) | RandomBits(seed, i + 99));
    if (Read(bytes, 1 + seed % 40, &lengths).ok()) CHECK(Complete(lengths));
  }
}

TEST("Every word is found where it stands, whatever follows it") {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const Bytes lengths = Lengths(SomeCounts(seed));
    const CodeTable table(lengths);
    CodeWord words[kMaxSymbols];
    MakeWords(lengths, words);
    for (size_t s = 0; s < lengths.size(); ++s) {
      if (lengths[s] == kNoCode) continue;
      const CodeTable::Entry entry = table[RandomBits(seed, s) << words[s].length | words[s].bits];
      CHECK(entry.symbol == s && entry.length == lengths[s]);
    }
  }
}

TEST("Shorter words come first, then lower symbols, highest bit first") {
  const Bytes lengths = {2, 1, 3, 3};
  CodeWord words[4];
  MakeWords(lengths, words);
  CHECK(words[1].bits == 0 && words[0].bits == 1 && words[2].bits == 3 && words[3].bits == 7);  // 0, 10, 110, 111
}

}  // namespace
}  // namespace deepreduce::testing
