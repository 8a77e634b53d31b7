#include "deepreduce_tf/cc/lib/index/index_codecs.h"

#include <iterator>

namespace deepreduce {
namespace {

constexpr IndexCodecEntry kEntries[] = {
#define DEEPREDUCE_INDEX_CODEC(id, name) {id, #name, &k##name},
#include "deepreduce_tf/cc/lib/index/index_codecs.def"
};

constexpr bool IdsAscend() {
  for (size_t i = 1; i < std::size(kEntries); ++i) {
    if (kEntries[i - 1].id >= kEntries[i].id) return false;
  }
  return true;
}
static_assert(IdsAscend(), "no two codecs have the same id");

}  // namespace

Span<const IndexCodecEntry> IndexCodecs() { return {kEntries, std::size(kEntries)}; }

const IndexCodec* FindIndexCodec(uint8_t id) {
  for (const IndexCodecEntry& entry : kEntries) {
    if (entry.id == id) return entry.codec;
  }
  return nullptr;
}

}  // namespace deepreduce
