// The number of bits of each gap in a Huffman code, then those bits.
#ifndef DEEPREDUCE_LIB_HUFFMAN_GAPS_H_
#define DEEPREDUCE_LIB_HUFFMAN_GAPS_H_

#include "index_codec.h"

namespace deepreduce {

extern const IndexCodec kHuffman;

}  // namespace deepreduce

#endif  // DEEPREDUCE_LIB_HUFFMAN_GAPS_H_
