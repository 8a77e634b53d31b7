// Values as pieces of polynomials (Xu et al., "DeepReduce: A sparse-tensor communication framework", NeurIPS 2021). The code is that of
// sorted_curve.h.
#ifndef DEEPREDUCE_LIB_VALUE_POLY_FIT_H_
#define DEEPREDUCE_LIB_VALUE_POLY_FIT_H_

#include "deepreduce_tf/cc/lib/value/value_codec.h"

namespace deepreduce {

extern const ValueCodec kPolyFit;

}  // namespace deepreduce

#endif  // DEEPREDUCE_LIB_VALUE_POLY_FIT_H_
