// Powers of two, drawn so that their mean is the value (Horvath et al., "Natural compression for distributed deep learning", 2019). The
// code: a byte of parameters, the smallest exponent, then a level of sign and exponent for each value.
#ifndef DEEPREDUCE_LIB_VALUE_NATURAL_H_
#define DEEPREDUCE_LIB_VALUE_NATURAL_H_

#include "deepreduce_tf/cc/lib/value/value_codec.h"

namespace deepreduce {

extern const ValueCodec kNatural;

}  // namespace deepreduce

#endif  // DEEPREDUCE_LIB_VALUE_NATURAL_H_
