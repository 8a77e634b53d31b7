// Powers of two (Horvath et al., "Natural compression for distributed deep learning", 2019).
#ifndef DEEPREDUCE_LIB_VALUE_NATURAL_H_
#define DEEPREDUCE_LIB_VALUE_NATURAL_H_

#include "deepreduce_tf/cc/lib/value/value_codec.h"

namespace deepreduce {

extern const ValueCodec kNatural;

}  // namespace deepreduce

#endif  // DEEPREDUCE_LIB_VALUE_NATURAL_H_
