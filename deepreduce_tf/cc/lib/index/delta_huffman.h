// The number of bytes of each gap in a Huffman code, then those bytes: the keys of SketchML (Jiang et al., SIGMOD 2018) and SKCompress
// (Jiang et al., The VLDB Journal 29, 2020). The code: the table of the Huffman code, then word and bytes gap by gap (classed_gaps.h).
#ifndef DEEPREDUCE_LIB_INDEX_DELTA_HUFFMAN_H_
#define DEEPREDUCE_LIB_INDEX_DELTA_HUFFMAN_H_

#include "deepreduce_tf/cc/lib/index/index_codec.h"

namespace deepreduce {

extern const IndexCodec kDeltaHuffman;

}  // namespace deepreduce

#endif  // DEEPREDUCE_LIB_INDEX_DELTA_HUFFMAN_H_
