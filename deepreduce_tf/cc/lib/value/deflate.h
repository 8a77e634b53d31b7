// Deflate behind another codec. zlib comes as a table of functions, so that this folder needs no compression library: the kernels bring
// zlib-ng, the fuzzers plain zlib.
#ifndef DEEPREDUCE_LIB_VALUE_DEFLATE_H_
#define DEEPREDUCE_LIB_VALUE_DEFLATE_H_

#include <cstddef>
#include <cstdint>

#include "deepreduce_tf/cc/lib/bits/span.h"
#include "deepreduce_tf/cc/lib/value/value_codec.h"

namespace deepreduce {

struct DeflateFunctions {
  // Writes a zlib stream (RFC 1950) into `out`; returns its length, or kNotShorter when it does not fit.
  size_t (*deflate)(Span<const uint8_t> bytes, int level, Span<uint8_t> out);
  // Reads a zlib stream that ends exactly where `stream` ends and holds at most out.size bytes; sets how many. False for anything else.
  bool (*inflate)(Span<const uint8_t> stream, Span<uint8_t> out, size_t* length);
};

// In place of the id of an inner codec: a codec of the application.
constexpr uint8_t kApplicationId = 255;
constexpr size_t kDeflateHeaderLength = 2;

// Most bytes of a deflated code of an application; a longer one is stored.
inline size_t MaxApplicationBytes(size_t values) { return 1024 + 16 * values; }

// Writes the code of `values` values from what the codec options.inner wrote for them, deflated or, where that is not shorter, as it is.
// Returns its length, at most kDeflateHeaderLength + inner.size, which `out` holds. `inner` is not empty.
size_t DeflateCode(const ValueOptions& options, Span<const uint8_t> inner, size_t values, uint8_t* out);

// Inverse of DeflateCode where the inner codec is an application's. `inner` holds at least as many bytes as the code stores, or
// MaxApplicationBytes.
Error InflateApplicationCode(const ValueOptions& options, Span<const uint8_t> code, size_t values, Span<uint8_t> inner, size_t* length);

// Without ValueOptions::deflate it encodes to the raw form and decodes nothing else.
extern const ValueCodec kDeflate;

}  // namespace deepreduce

#endif  // DEEPREDUCE_LIB_VALUE_DEFLATE_H_
