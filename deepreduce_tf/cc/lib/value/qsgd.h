// Stochastic quantisation of blocks on an even grid (Alistarh et al., "QSGD", NIPS 2017). The code: a byte of parameters, a float32 scale
// for each block of 512 values, then a level of sign and magnitude for each value.
#ifndef DEEPREDUCE_LIB_VALUE_QSGD_H_
#define DEEPREDUCE_LIB_VALUE_QSGD_H_

#include "deepreduce_tf/cc/lib/value/value_codec.h"

namespace deepreduce {

extern const ValueCodec kQSGD;

}  // namespace deepreduce

#endif  // DEEPREDUCE_LIB_VALUE_QSGD_H_
