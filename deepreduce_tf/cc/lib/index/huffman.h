// The number of bits of each gap in a Huffman code, then those bits. The code: the table of the Huffman code, then word and bits gap by gap
// (classed_gaps.h).
#ifndef DEEPREDUCE_LIB_INDEX_HUFFMAN_H_
#define DEEPREDUCE_LIB_INDEX_HUFFMAN_H_

#include "deepreduce_tf/cc/lib/index/index_codec.h"

namespace deepreduce {

extern const IndexCodec kHuffman;

}  // namespace deepreduce

#endif  // DEEPREDUCE_LIB_INDEX_HUFFMAN_H_
