#include "random_support.h"

#include <algorithm>
#include <vector>

#include "random.h"

namespace deepreduce {

void RandomSupport(uint64_t key, int64_t size, Span<int32_t> support) {
  const int64_t count = static_cast<int64_t>(support.size);
  if (count == 0) return;
  const bool complement = 2 * count > size;
  const int64_t drawn = std::min(count, size - count);
  std::vector<uint64_t> marked((size + 63) / 64, 0);
  uint64_t position = 0;
  for (int64_t found = 0; found < drawn;) {
    const uint64_t place = ScaleTo(RandomBits(key, position++), static_cast<uint64_t>(size));
    uint64_t& word = marked[place >> 6];
    const uint64_t bit = 1ull << (place & 63);
    found += (word & bit) == 0;
    word |= bit;
  }
  size_t written = 0;
  for (size_t w = 0; w < marked.size(); ++w) {
    uint64_t word = complement ? ~marked[w] : marked[w];
    if (w + 1 == marked.size() && size % 64 != 0) word &= (1ull << (size % 64)) - 1;
    for (; word != 0; word &= word - 1) support[written++] = static_cast<int32_t>(w * 64 + __builtin_ctzll(word));
  }
}

}  // namespace deepreduce
