// A binary range coder over a tree of places, whose chances follow the rows and columns of the variable's shape.
#ifndef DEEPREDUCE_LIB_INDEX_ADAPTIVE_H_
#define DEEPREDUCE_LIB_INDEX_ADAPTIVE_H_

#include "deepreduce_tf/cc/lib/index/index_codec.h"

namespace deepreduce {

extern const IndexCodec kAdaptive;

}  // namespace deepreduce

#endif  // DEEPREDUCE_LIB_INDEX_ADAPTIVE_H_
