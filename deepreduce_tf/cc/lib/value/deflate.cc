#include "deepreduce_tf/cc/lib/value/deflate.h"

#include <algorithm>
#include <cstring>

#include "deepreduce_tf/cc/lib/bits/all_finite.h"
#include "deepreduce_tf/cc/lib/bits/buffer.h"
#include "deepreduce_tf/cc/lib/value/value_codecs.h"

namespace deepreduce {
namespace {

// Bytes of one number in an inner code; 1 where numbers are not whole bytes.
size_t NumberBytes(uint8_t inner, size_t length, size_t values) {
  if (inner == kApplicationId) return 1;
  if (length == sizeof(float) * values) return sizeof(float);
  return inner == kFloat16Id || inner == kBFloat16Id ? 2 : 1;
}

// First bytes first, then second bytes, …: exponents compress better side by side.
template <size_t kStride>
void Shuffle(Span<const uint8_t> bytes, uint8_t* out) {
  const size_t n = bytes.size / kStride;
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = 0; j < kStride; ++j) out[j * n + i] = bytes[kStride * i + j];
  }
}

template <size_t kStride>
void Unshuffle(Span<const uint8_t> bytes, uint8_t* out) {
  const size_t n = bytes.size / kStride;
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = 0; j < kStride; ++j) out[kStride * i + j] = bytes[j * n + i];
  }
}

// A zlib stream, or kNotShorter when it does not fit.
size_t DeflateShuffled(const ValueOptions& options, Span<const uint8_t> inner, size_t stride, Span<uint8_t> out) {
  if (stride == 1) return options.deflate->deflate(inner, options.level, out);
  const Buffer<uint8_t> shuffled = AllocateBuffer<uint8_t>(inner.size);
  if (shuffled == nullptr) return kNotShorter;
  if (stride == 2) Shuffle<2>(inner, shuffled.get());
  if (stride == 4) Shuffle<4>(inner, shuffled.get());
  return options.deflate->deflate({shuffled.get(), inner.size}, options.level, out);
}

// The op has the inner code already, and does without (DeflateEncodeOp).
size_t Encode(const ValueOptions& options, Span<const float> values, Span<uint8_t> code, float* decoded) {
  const ValueCodec* codec = options.inner == kDeflateId ? nullptr : FindValueCodec(options.inner);
  if (options.deflate == nullptr || codec == nullptr) return kNotShorter;
  const Buffer<uint8_t> inner = AllocateBuffer<uint8_t>(code.size + kSlack);
  if (inner == nullptr) return kNotShorter;
  const size_t length = EncodeValues(*codec, options, values, inner.get(), decoded);
  const size_t whole = DeflateCode(options, {inner.get(), length}, values.size, code.data);
  return whole < code.size ? whole : kNotShorter;
}

// The head of a code: whether what follows is a zlib stream, and of which stride.
struct Head {
  uint8_t inner = 0;
  uint8_t stride = 0;  // 0: the inner code as it is
};

Error ReadHead(Span<const uint8_t> code, Head* head) {
  if (code.size <= kDeflateHeaderLength) return {"Deflate: code ends early", static_cast<int64_t>(code.size)};
  *head = {code[0], code[1]};
  if (head->stride > 4 || head->stride == 3) return {"Deflate: unknown stride", 1};
  return {};
}

Error Decode(const ValueOptions& options, Span<const uint8_t> code, Span<float> values) {
  if (options.deflate == nullptr) return {"Deflate: no decompressor", 0};
  Head head;
  if (Error error = ReadHead(code, &head); !error.ok()) return error;
  const ValueCodec* codec = head.inner == kDeflateId ? nullptr : FindValueCodec(head.inner);
  if (codec == nullptr) return {"Deflate: unknown inner codec", 0};
  const Span<const uint8_t> body = code.subspan(kDeflateHeaderLength, code.size - kDeflateHeaderLength);
  if (head.stride == 0) {
    const Error error = DecodeValues(*codec, options, body, values);
    return {error.name, error.position + static_cast<int64_t>(kDeflateHeaderLength)};
  }
  // No inner code is longer than its values, so they are room for the shuffled one.
  size_t length = 0;
  const Span<uint8_t> shuffled(reinterpret_cast<uint8_t*>(values.data), sizeof(float) * values.size);
  if (!options.deflate->inflate(body, shuffled, &length)) return {"Deflate: not a zlib stream of the right length", kDeflateHeaderLength};
  if (head.stride != 1 && head.stride != NumberBytes(head.inner, length, values.size)) {
    return {"Deflate: stride of other numbers", 1};
  }
  const Buffer<uint8_t> inner = AllocateBuffer<uint8_t>(length);
  if (inner == nullptr) return {"Deflate: out of memory", 0};
  const Span<const uint8_t> bytes(shuffled.data, length);
  if (head.stride == 1) std::memcpy(inner.get(), bytes.data, length);
  if (head.stride == 2) Unshuffle<2>(bytes, inner.get());
  if (head.stride == 4) Unshuffle<4>(bytes, inner.get());
  const Error error = DecodeValues(*codec, options, {inner.get(), length}, values);
  if (!error.ok()) return {error.name, kDeflateHeaderLength};
  if (!AllFinite(values)) return {"Deflate: value is not finite", kDeflateHeaderLength};
  return {};
}

}  // namespace

size_t DeflateCode(const ValueOptions& options, Span<const uint8_t> inner, size_t values, uint8_t* out) {
  const size_t stride = options.shuffle ? NumberBytes(options.inner, inner.size, values) : 1;
  const bool may_deflate = options.inner != kApplicationId || inner.size <= MaxApplicationBytes(values);
  const Span<uint8_t> room(out + kDeflateHeaderLength, inner.size - 1);
  const size_t length = may_deflate ? DeflateShuffled(options, inner, stride, room) : kNotShorter;
  out[0] = options.inner;
  out[1] = static_cast<uint8_t>(length == kNotShorter ? 0 : stride);
  if (length != kNotShorter) return kDeflateHeaderLength + length;
  std::memcpy(out + kDeflateHeaderLength, inner.data, inner.size);
  return kDeflateHeaderLength + inner.size;
}

Error InflateApplicationCode(const ValueOptions& options, Span<const uint8_t> code, size_t values, Span<uint8_t> inner, size_t* length) {
  Head head;
  if (Error error = ReadHead(code, &head); !error.ok()) return error;
  if (head.inner != kApplicationId) return {"Deflate: unknown inner codec", 0};
  if (head.stride > 1) return {"Deflate: stride of other numbers", 1};
  const Span<const uint8_t> body = code.subspan(kDeflateHeaderLength, code.size - kDeflateHeaderLength);
  if (head.stride == 0) {
    *length = body.size;
    std::memcpy(inner.data, body.data, body.size);
    return {};
  }
  const Span<uint8_t> room = inner.subspan(0, std::min(inner.size, MaxApplicationBytes(values)));
  if (!options.deflate->inflate(body, room, length)) return {"Deflate: not a zlib stream of the right length", kDeflateHeaderLength};
  return {};
}

const ValueCodec kDeflate = {Encode, Decode};

}  // namespace deepreduce
