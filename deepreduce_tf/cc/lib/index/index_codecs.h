// The registry of index codecs, made from index_codecs.def: the declaration, the id and the entry of each.
#ifndef DEEPREDUCE_LIB_INDEX_INDEX_CODECS_H_
#define DEEPREDUCE_LIB_INDEX_INDEX_CODECS_H_

#include <cstdint>

#include "deepreduce_tf/cc/lib/bits/span.h"
#include "deepreduce_tf/cc/lib/index/index_codec.h"

namespace deepreduce {

#define DEEPREDUCE_INDEX_CODEC(id, name) \
  extern const IndexCodec k##name;       \
  constexpr uint8_t k##name##Id = id;
#include "deepreduce_tf/cc/lib/index/index_codecs.def"

struct IndexCodecEntry {
  uint8_t id;
  const char* name;
  const IndexCodec* codec;
};

// By ascending id.
Span<const IndexCodecEntry> IndexCodecs();

// Null when there is no such codec.
const IndexCodec* FindIndexCodec(uint8_t id);

}  // namespace deepreduce

#endif  // DEEPREDUCE_LIB_INDEX_INDEX_CODECS_H_
