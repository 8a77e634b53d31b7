// Golomb-Rice codes of the gaps between indices, or between absent elements where these are fewer (Rice, Plaunt, "Adaptive variable-length
// coding", 1971). The code: a byte for the parameter b and which of the two, then gap by gap its quotient by 2^b in unary and b low bits.
#ifndef DEEPREDUCE_LIB_INDEX_RICE_H_
#define DEEPREDUCE_LIB_INDEX_RICE_H_

#include "deepreduce_tf/cc/lib/index/index_codec.h"

namespace deepreduce {

extern const IndexCodec kRice;

}  // namespace deepreduce

#endif  // DEEPREDUCE_LIB_INDEX_RICE_H_
