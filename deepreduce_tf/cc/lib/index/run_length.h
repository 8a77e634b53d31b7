// Lengths of the runs of absent and kept places (Golomb, "Run-length encodings", 1966), in the gamma code of Elias ("Universal codeword
// sets and representations of the integers", 1975).
#ifndef DEEPREDUCE_LIB_INDEX_RUN_LENGTH_H_
#define DEEPREDUCE_LIB_INDEX_RUN_LENGTH_H_

#include "deepreduce_tf/cc/lib/index/index_codec.h"

namespace deepreduce {

extern const IndexCodec kRunLength;

}  // namespace deepreduce

#endif  // DEEPREDUCE_LIB_INDEX_RUN_LENGTH_H_
