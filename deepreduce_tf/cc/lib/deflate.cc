#include "deflate.h"

#include <memory>
#include <new>

#include "collect.h"
#include "float_bits.h"
#include "value_codec.h"

namespace deepreduce {
namespace {

constexpr uint8_t kFloat32Id = 1;
constexpr size_t kHead = 2;
constexpr size_t kStride = sizeof(float);

// First bytes first, then second bytes, …: exponents compress better side by side.
void Shuffle(Span<const float> values, uint8_t* out) {
  const size_t n = values.size;
  for (size_t i = 0; i < n; ++i) {
    const uint32_t bits = BitsOf(values[i]);
    out[i] = static_cast<uint8_t>(bits);
    out[n + i] = static_cast<uint8_t>(bits >> 8);
    out[2 * n + i] = static_cast<uint8_t>(bits >> 16);
    out[3 * n + i] = static_cast<uint8_t>(bits >> 24);
  }
}

void Unshuffle(const uint8_t* bytes, Span<float> values) {
  const size_t n = values.size;
  for (size_t i = 0; i < n; ++i) {
    const uint32_t low = bytes[i] | uint32_t{bytes[n + i]} << 8;
    const uint32_t high = bytes[2 * n + i] | uint32_t{bytes[3 * n + i]} << 8;
    values[i] = FloatOf(low | high << 16);
  }
}

Span<uint8_t> BytesOf(float* values, size_t n) { return {reinterpret_cast<uint8_t*>(values), kStride * n}; }

size_t Encode(const ValueOptions& options, Span<const float> values, Span<uint8_t> code, float* decoded) {
  if (options.deflate == nullptr) return kNotShorter;
  code[0] = kFloat32Id;
  code[1] = options.shuffle ? kStride : 1;
  // `decoded` is room for the shuffled bytes until it gets the values themselves.
  const Span<uint8_t> content = BytesOf(decoded, values.size);
  if (options.shuffle) {
    Shuffle(values, content.data);
  } else {
    std::memcpy(content.data, values.data, content.size);
  }
  const Span<uint8_t> room = code.subspan(kHead, code.size - kHead - 1);
  const size_t length = options.deflate->deflate(Span<const uint8_t>(content.data, content.size), options.level, room);
  if (length == kNotShorter) return kNotShorter;
  std::memcpy(decoded, values.data, content.size);
  return kHead + length;
}

Error Decode(const ValueOptions& options, Span<const uint8_t> code, Span<float> values) {
  if (options.deflate == nullptr) return {"Deflate: no decompressor", 0};
  if (code.size <= kHead) return {"Deflate: code ends early", static_cast<int64_t>(code.size)};
  if (code[0] != kFloat32Id) return {"Deflate: unknown inner codec", 0};
  const bool shuffled = code[1] == kStride;
  if (!shuffled && code[1] != 1) return {"Deflate: unknown stride", 1};
  const Span<const uint8_t> stream = code.subspan(kHead, code.size - kHead);
  Span<uint8_t> content = BytesOf(values.data, values.size);
  std::unique_ptr<uint8_t[]> bytes;
  if (shuffled) {
    bytes.reset(new (std::nothrow) uint8_t[content.size]);
    if (bytes == nullptr) return {"Deflate: out of memory", 0};
    content.data = bytes.get();
  }
  if (!options.deflate->inflate(stream, content)) return {"Deflate: not a zlib stream of the right length", kHead};
  if (shuffled) Unshuffle(content.data, values);
  if (!AllFinite(values)) return {"Deflate: value is not finite", kHead};
  return {};
}

}  // namespace

const ValueCodec kDeflate = {6, "Deflate", Encode, Decode};

}  // namespace deepreduce
