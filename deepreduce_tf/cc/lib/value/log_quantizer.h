// Magnitudes in bins that are logarithmic by octave. The code: a byte of parameters, smallest and largest magnitude or, where the values
// outweigh it, a table of the bins' means, then a level of sign and bin for each value.
#ifndef DEEPREDUCE_LIB_VALUE_LOG_QUANTIZER_H_
#define DEEPREDUCE_LIB_VALUE_LOG_QUANTIZER_H_

#include "deepreduce_tf/cc/lib/value/value_codec.h"

namespace deepreduce {

extern const ValueCodec kLogQuantizer;

}  // namespace deepreduce

#endif  // DEEPREDUCE_LIB_VALUE_LOG_QUANTIZER_H_
