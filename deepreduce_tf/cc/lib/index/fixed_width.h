// The raw form alone: indices of ceil(log2 size) bits each (bits/raw_indices.h).
#ifndef DEEPREDUCE_LIB_INDEX_FIXED_WIDTH_H_
#define DEEPREDUCE_LIB_INDEX_FIXED_WIDTH_H_

#include "deepreduce_tf/cc/lib/index/index_codec.h"

namespace deepreduce {

extern const IndexCodec kFixedWidth;

}  // namespace deepreduce

#endif  // DEEPREDUCE_LIB_INDEX_FIXED_WIDTH_H_
