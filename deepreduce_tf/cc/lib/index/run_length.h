// Lengths of the runs of absent and kept elements in turn (Golomb, "Run-length encodings", 1966), each in the gamma code of Elias.
#ifndef DEEPREDUCE_LIB_INDEX_RUN_LENGTH_H_
#define DEEPREDUCE_LIB_INDEX_RUN_LENGTH_H_

#include "deepreduce_tf/cc/lib/index/index_codec.h"

namespace deepreduce {

extern const IndexCodec kRunLength;

}  // namespace deepreduce

#endif  // DEEPREDUCE_LIB_INDEX_RUN_LENGTH_H_
