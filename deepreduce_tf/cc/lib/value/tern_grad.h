// Ternary values of one scale per segment (Wen et al., "TernGrad", NIPS 2017). The code: the scale as float32, then trits, five to a byte.
#ifndef DEEPREDUCE_LIB_VALUE_TERN_GRAD_H_
#define DEEPREDUCE_LIB_VALUE_TERN_GRAD_H_

#include "deepreduce_tf/cc/lib/value/value_codec.h"

namespace deepreduce {

extern const ValueCodec kTernGrad;

}  // namespace deepreduce

#endif  // DEEPREDUCE_LIB_VALUE_TERN_GRAD_H_
