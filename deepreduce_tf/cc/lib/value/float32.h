// The raw form alone: values of four bytes each.
#ifndef DEEPREDUCE_LIB_VALUE_FLOAT32_H_
#define DEEPREDUCE_LIB_VALUE_FLOAT32_H_

#include "deepreduce_tf/cc/lib/value/value_codec.h"

namespace deepreduce {

extern const ValueCodec kFloat32;

}  // namespace deepreduce

#endif  // DEEPREDUCE_LIB_VALUE_FLOAT32_H_
