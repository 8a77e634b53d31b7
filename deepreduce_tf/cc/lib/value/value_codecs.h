// The registry of value codecs, made from value_codecs.def: the declaration, the id and the entry of each.
#ifndef DEEPREDUCE_LIB_VALUE_VALUE_CODECS_H_
#define DEEPREDUCE_LIB_VALUE_VALUE_CODECS_H_

#include <cstdint>

#include "deepreduce_tf/cc/lib/bits/span.h"
#include "deepreduce_tf/cc/lib/value/value_codec.h"

namespace deepreduce {

#define DEEPREDUCE_VALUE_CODEC(id, name) \
  extern const ValueCodec k##name;       \
  constexpr uint8_t k##name##Id = id;
#include "deepreduce_tf/cc/lib/value/value_codecs.def"

struct ValueCodecEntry {
  uint8_t id;
  const char* name;
  const ValueCodec* codec;
};

// By ascending id.
Span<const ValueCodecEntry> ValueCodecs();

// Null when there is no such codec.
const ValueCodec* FindValueCodec(uint8_t id);

}  // namespace deepreduce

#endif  // DEEPREDUCE_LIB_VALUE_VALUE_CODECS_H_
