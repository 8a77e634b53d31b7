// Golomb-Rice codes of the gaps between indices (Rice, Plaunt, "Adaptive variable-length coding", 1971).
#ifndef DEEPREDUCE_LIB_INDEX_RICE_H_
#define DEEPREDUCE_LIB_INDEX_RICE_H_

#include "deepreduce_tf/cc/lib/index/index_codec.h"

namespace deepreduce {

extern const IndexCodec kRice;

}  // namespace deepreduce

#endif  // DEEPREDUCE_LIB_INDEX_RICE_H_
