// Deflate as a table of functions, so that this folder needs no compression library: the kernels bring zlib-ng, the fuzzers plain zlib.
#ifndef DEEPREDUCE_LIB_DEFLATE_H_
#define DEEPREDUCE_LIB_DEFLATE_H_

#include <cstddef>
#include <cstdint>

#include "span.h"
#include "value_codec.h"

namespace deepreduce {

struct DeflateFunctions {
  // Writes a zlib stream (RFC 1950) into `out`; returns its length, or kNotShorter when it does not fit.
  size_t (*deflate)(Span<const uint8_t> bytes, int level, Span<uint8_t> out);
  // Reads a zlib stream that ends exactly where `stream` ends and holds exactly out.size bytes. False for anything else.
  bool (*inflate)(Span<const uint8_t> stream, Span<uint8_t> out);
};

// Without ValueOptions::deflate it encodes to the raw form and decodes nothing else.
extern const ValueCodec kDeflate;

}  // namespace deepreduce

#endif  // DEEPREDUCE_LIB_DEFLATE_H_
