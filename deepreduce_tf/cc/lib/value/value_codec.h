// Value codecs: the values of one segment to bytes and back. The bytes are defined in docs/format/value_codes.md.
#ifndef DEEPREDUCE_LIB_VALUE_VALUE_CODEC_H_
#define DEEPREDUCE_LIB_VALUE_VALUE_CODEC_H_

#include <cstddef>
#include <cstdint>

#include "deepreduce_tf/cc/lib/bits/error.h"
#include "deepreduce_tf/cc/lib/bits/limits.h"
#include "deepreduce_tf/cc/lib/bits/span.h"

namespace deepreduce {

struct DeflateFunctions;  // deflate.h

// Everything that may be set about a value codec; each reads what concerns it.
struct ValueOptions {
  int bits = 8;          // QSGD, LogQuantizer, SketchML: 2 to 8
  bool l2_norm = false;  // QSGD
  float multiplier = 1;  // ThreeLC: from 1, below 2
  bool shuffle = true;   // Deflate
  int level = 6;         // Deflate: 1 to 9
  int degree = 5;        // PolyFit: 1 to 15
  int pieces = 0;        // PolyFit: 1 to 64, or 0 by its own rule
  uint8_t inner = 1;     // Deflate: id of the codec whose code is deflated
  // QSGD, TernGrad, Natural: stochastic rounding; differs by seed, step, rank and segment (StreamKey of random.h)
  uint64_t noise_key = 0;
  const DeflateFunctions* deflate = nullptr;
  // Where rounding noise may exceed the values: shrink them (TernGrad; QSGD's l2 norm at few bits) or round to nearest (its max norm), as
  // error feedback requires.
  bool contraction = false;
};

struct ValueCodec {
  // The coded form alone: all values are finite, there is at least one, code.size is the raw length (4 bytes a value).
  // Returns a length below code.size, or kNotShorter. On success `decoded` holds what `decode` will give.
  size_t (*encode)(const ValueOptions& options, Span<const float> values, Span<uint8_t> code, float* decoded);
  // Total: any bytes give either an error or exactly values.size finite values.
  Error (*decode)(const ValueOptions& options, Span<const uint8_t> code, Span<float> values);
};

// Writes the raw or the coded form, whichever is shorter, and into `decoded` what receivers will see; returns the length.
// `code` holds 4 * values.size + kSlack bytes. `decoded` may not overlap `values`.
size_t EncodeValues(const ValueCodec& codec, const ValueOptions& options, Span<const float> values, uint8_t* code, float* decoded);

// Reads what EncodeValues wrote. Only the raw form may hold non-finite values.
Error DecodeValues(const ValueCodec& codec, const ValueOptions& options, Span<const uint8_t> code, Span<float> values);

}  // namespace deepreduce

#endif  // DEEPREDUCE_LIB_VALUE_VALUE_CODEC_H_
