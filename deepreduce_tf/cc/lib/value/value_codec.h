// Value codecs: the values of one segment to bytes and back. The bytes are defined in docs/format/value_codes.md.
//
// A code is empty where there are no values. Otherwise it is the coded form of its codec, where that is shorter and all values are finite,
// or the raw form, float32 values; so it is never longer than 4 bytes a value. EncodeValues and DecodeValues hold that rule; a ValueCodec
// is the coded form.
//
// All memory is the caller's, and none of it is kept. Where a codec needs memory of its own that is not to be had, its decoder gives an
// error, and its encoder kNotShorter.
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
  // Writes the coded form and returns its length, which is below code.size, and into `decoded` what `decode` will give, bit by bit;
  // otherwise kNotShorter, and what was written has no meaning. There is at least one value, and all are finite. code.size is the raw
  // length, 4 bytes a value, and kSlack bytes beyond it may be written too. `decoded` holds values.size values and does not overlap
  // `values`.
  size_t (*encode)(const ValueOptions& options, Span<const float> values, Span<uint8_t> code, float* decoded);

  // Reads the coded form. Total: any bytes give either an error, or exactly values.size finite values. Of the options only `deflate` is
  // looked at; a code tells the others itself. Reads nothing beyond `code`. After an error, `values` have no meaning.
  Error (*decode)(const ValueOptions& options, Span<const uint8_t> code, Span<float> values);
};

// Writes the code of some values and returns its length, and into `decoded` what receivers will see. `code` holds 4 * values.size + kSlack
// bytes. `decoded` does not overlap `values`.
size_t EncodeValues(const ValueCodec& codec, const ValueOptions& options, Span<const float> values, uint8_t* code, float* decoded);

// Reads what EncodeValues wrote. Total, as ValueCodec::decode, but for values that are not finite: the raw form may hold them.
Error DecodeValues(const ValueCodec& codec, const ValueOptions& options, Span<const uint8_t> code, Span<float> values);

}  // namespace deepreduce

#endif  // DEEPREDUCE_LIB_VALUE_VALUE_CODEC_H_
