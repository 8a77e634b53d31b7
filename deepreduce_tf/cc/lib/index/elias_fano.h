// Low bits of the indices as they are, high bits in unary (Elias, "Efficient storage and retrieval by content and address of static
// files", 1974; Fano, "On the number of bits required to implement an associative memory", 1971). The code: all unary parts, then all low
// bits; its length follows from size and count.
#ifndef DEEPREDUCE_LIB_INDEX_ELIAS_FANO_H_
#define DEEPREDUCE_LIB_INDEX_ELIAS_FANO_H_

#include "deepreduce_tf/cc/lib/index/index_codec.h"

namespace deepreduce {

extern const IndexCodec kEliasFano;

}  // namespace deepreduce

#endif  // DEEPREDUCE_LIB_INDEX_ELIAS_FANO_H_
