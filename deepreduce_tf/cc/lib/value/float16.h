// IEEE binary16, rounded to nearest even: two bytes a value.
#ifndef DEEPREDUCE_LIB_VALUE_FLOAT16_H_
#define DEEPREDUCE_LIB_VALUE_FLOAT16_H_

#include "deepreduce_tf/cc/lib/value/value_codec.h"

namespace deepreduce {

extern const ValueCodec kFloat16;

}  // namespace deepreduce

#endif  // DEEPREDUCE_LIB_VALUE_FLOAT16_H_
