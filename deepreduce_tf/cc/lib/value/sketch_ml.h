// Buckets of magnitudes in a Huffman code, decoded to their means (Jiang et al., "SketchML: Accelerating distributed machine learning with
// data sketches", SIGMOD 2018). The code: the number of buckets, whether there are zeros, the means, the table of the Huffman code, then a
// word for each value.
#ifndef DEEPREDUCE_LIB_VALUE_SKETCH_ML_H_
#define DEEPREDUCE_LIB_VALUE_SKETCH_ML_H_

#include "deepreduce_tf/cc/lib/value/value_codec.h"

namespace deepreduce {

extern const ValueCodec kSketchML;

}  // namespace deepreduce

#endif  // DEEPREDUCE_LIB_VALUE_SKETCH_ML_H_
