// No bytes: both sides draw the support from seed, step and segment (bits/random_support.h). Its encoder does not look at the indices.
#ifndef DEEPREDUCE_LIB_INDEX_SEEDED_SUPPORT_H_
#define DEEPREDUCE_LIB_INDEX_SEEDED_SUPPORT_H_

#include "deepreduce_tf/cc/lib/index/index_codec.h"

namespace deepreduce {

extern const IndexCodec kSeededSupport;

}  // namespace deepreduce

#endif  // DEEPREDUCE_LIB_INDEX_SEEDED_SUPPORT_H_
