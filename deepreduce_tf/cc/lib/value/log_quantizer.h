// Bins that are logarithmic by octave, with their means as a table when the values outweigh it.
#ifndef DEEPREDUCE_LIB_VALUE_LOG_QUANTIZER_H_
#define DEEPREDUCE_LIB_VALUE_LOG_QUANTIZER_H_

#include "deepreduce_tf/cc/lib/value/value_codec.h"

namespace deepreduce {

extern const ValueCodec kLogQuantizer;

}  // namespace deepreduce

#endif  // DEEPREDUCE_LIB_VALUE_LOG_QUANTIZER_H_
