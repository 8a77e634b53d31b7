// Ternary values with runs of zeros (Lim, Andersen, Kaminsky, "3LC", MLSys 2019). The code: the scale as float32, then trits, five to a
// byte, and bytes for runs of bytes that hold zeros alone.
#ifndef DEEPREDUCE_LIB_VALUE_THREE_LC_H_
#define DEEPREDUCE_LIB_VALUE_THREE_LC_H_

#include "deepreduce_tf/cc/lib/value/value_codec.h"

namespace deepreduce {

extern const ValueCodec kThreeLC;

}  // namespace deepreduce

#endif  // DEEPREDUCE_LIB_VALUE_THREE_LC_H_
