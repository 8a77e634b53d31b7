// Decisions of a binary range coder over a tree of the elements, whose probabilities follow the rows and columns of the variable's shape.
// The code: a byte that tells the form, rows and columns in LEB128 where the shape is used, the range coder's bytes. Or the code of Rice,
// where that is as short. Takes time and memory in proportion to the count.
#ifndef DEEPREDUCE_LIB_INDEX_ADAPTIVE_H_
#define DEEPREDUCE_LIB_INDEX_ADAPTIVE_H_

#include "deepreduce_tf/cc/lib/index/index_codec.h"

namespace deepreduce {

extern const IndexCodec kAdaptive;

}  // namespace deepreduce

#endif  // DEEPREDUCE_LIB_INDEX_ADAPTIVE_H_
