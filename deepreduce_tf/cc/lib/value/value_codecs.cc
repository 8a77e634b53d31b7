#include "deepreduce_tf/cc/lib/value/value_codecs.h"

#include <iterator>

namespace deepreduce {
namespace {

constexpr ValueCodecEntry kEntries[] = {
#define DEEPREDUCE_VALUE_CODEC(id, name) {id, #name, &k##name},
#include "deepreduce_tf/cc/lib/value/value_codecs.def"
};

constexpr bool IdsAscend() {
  for (size_t i = 1; i < std::size(kEntries); ++i) {
    if (kEntries[i - 1].id >= kEntries[i].id) return false;
  }
  return true;
}
static_assert(IdsAscend(), "no two codecs have the same id");

}  // namespace

Span<const ValueCodecEntry> ValueCodecs() { return {kEntries, std::size(kEntries)}; }

const ValueCodec* FindValueCodec(uint8_t id) {
  for (const ValueCodecEntry& entry : kEntries) {
    if (entry.id == id) return entry.codec;
  }
  return nullptr;
}

}  // namespace deepreduce
