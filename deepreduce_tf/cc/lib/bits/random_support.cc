#include "deepreduce_tf/cc/lib/bits/random_support.h"

#include <algorithm>

#include "deepreduce_tf/cc/lib/bits/buffer.h"
#include "deepreduce_tf/cc/lib/bits/random.h"

namespace deepreduce {

bool RandomSupport(uint64_t key, int64_t size, Span<int32_t> support) {
  const int64_t count = static_cast<int64_t>(support.size);
  if (count == 0) return true;
  const bool complement = 2 * count > size;
  const int64_t drawn = std::min(count, size - count);
  const size_t words = static_cast<size_t>((size + 63) / 64);
  const Buffer<uint64_t> marked = AllocateZeros<uint64_t>(words);
  if (marked == nullptr) return false;
  uint64_t position = 0;
  for (int64_t found = 0; found < drawn;) {
    const uint64_t place = ScaleTo(RandomBits(key, position++), static_cast<uint64_t>(size));
    uint64_t& word = marked[place >> 6];
    const uint64_t bit = 1ull << (place & 63);
    found += (word & bit) == 0;
    word |= bit;
  }
  size_t written = 0;
  for (size_t w = 0; w < words; ++w) {
    uint64_t word = complement ? ~marked[w] : marked[w];
    if (w + 1 == words && size % 64 != 0) word &= (1ull << (size % 64)) - 1;
    for (; word != 0; word &= word - 1) support[written++] = static_cast<int32_t>(w * 64 + __builtin_ctzll(word));
  }
  return true;
}

}  // namespace deepreduce
