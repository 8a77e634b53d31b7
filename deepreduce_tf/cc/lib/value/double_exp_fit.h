// Values as two exponentials, one sum for each sign (Xu et al., "DeepReduce: A sparse-tensor communication framework", NeurIPS 2021). The
// code is that of sorted_curve.h, with double exponentials where they fit.
#ifndef DEEPREDUCE_LIB_VALUE_DOUBLE_EXP_FIT_H_
#define DEEPREDUCE_LIB_VALUE_DOUBLE_EXP_FIT_H_

#include "deepreduce_tf/cc/lib/value/value_codec.h"

namespace deepreduce {

extern const ValueCodec kDoubleExpFit;

}  // namespace deepreduce

#endif  // DEEPREDUCE_LIB_VALUE_DOUBLE_EXP_FIT_H_
