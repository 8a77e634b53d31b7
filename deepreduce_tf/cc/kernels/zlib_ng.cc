#include "deepreduce_tf/cc/kernels/zlib_ng.h"

#include <cstdint>
#include <limits>

#include "deepreduce_tf/cc/lib/bits/limits.h"

extern "C" {
// zlib-ng's stream, as its native API (2.x) lays it out.
struct zng_stream {
  const uint8_t* next_in;
  uint32_t avail_in;
  size_t total_in;
  uint8_t* next_out;
  uint32_t avail_out;
  size_t total_out;
  const char* msg;
  void* state;
  void* zalloc;
  void* zfree;
  void* opaque;
  int data_type;
  uint32_t adler;
  unsigned long reserved;
};
__attribute__((weak)) int32_t zng_deflateInit2(zng_stream*, int32_t level, int32_t method, int32_t window, int32_t memory,
                                               int32_t strategy);
__attribute__((weak)) int32_t zng_deflate(zng_stream*, int32_t flush);
__attribute__((weak)) int32_t zng_deflateEnd(zng_stream*);
__attribute__((weak)) int32_t zng_inflateInit2(zng_stream*, int32_t window);
__attribute__((weak)) int32_t zng_inflate(zng_stream*, int32_t flush);
__attribute__((weak)) int32_t zng_inflateEnd(zng_stream*);
}

namespace deepreduce {
namespace {

constexpr int32_t kFinish = 4, kStreamEnd = 1, kOk = 0, kDeflated = 8, kWindowBits = 15, kMemoryLevel = 8, kDefaultStrategy = 0;

bool FitsStream(size_t a, size_t b) { return a <= std::numeric_limits<uint32_t>::max() && b <= std::numeric_limits<uint32_t>::max(); }

zng_stream Stream(Span<const uint8_t> in, Span<uint8_t> out) {
  zng_stream stream = {};
  stream.next_in = in.data;
  stream.avail_in = static_cast<uint32_t>(in.size);
  stream.next_out = out.data;
  stream.avail_out = static_cast<uint32_t>(out.size);
  return stream;
}

size_t Deflate(Span<const uint8_t> bytes, int level, Span<uint8_t> out) {
  if (!FitsStream(bytes.size, out.size)) return kNotShorter;
  zng_stream stream = Stream(bytes, out);
  if (zng_deflateInit2(&stream, level, kDeflated, kWindowBits, kMemoryLevel, kDefaultStrategy) != kOk) return kNotShorter;
  const bool whole = zng_deflate(&stream, kFinish) == kStreamEnd;
  const size_t length = stream.total_out;
  zng_deflateEnd(&stream);
  return whole ? length : kNotShorter;
}

bool Inflate(Span<const uint8_t> bytes, Span<uint8_t> out, size_t* length) {
  if (!FitsStream(bytes.size, out.size)) return false;
  zng_stream stream = Stream(bytes, out);
  if (zng_inflateInit2(&stream, kWindowBits) != kOk) return false;
  const bool whole = zng_inflate(&stream, kFinish) == kStreamEnd && stream.avail_in == 0;
  *length = stream.total_out;
  zng_inflateEnd(&stream);
  return whole;
}

constexpr DeflateFunctions kFunctions = {Deflate, Inflate};

}  // namespace

absl::Status FindZlibNg(const DeflateFunctions** functions) {
  if (zng_deflateInit2 == nullptr || zng_inflateInit2 == nullptr) {
    return absl::UnavailableError(
        "Deflate needs zlib-ng, which was not loaded. Install it with `pip install zlib-ng` and import deepreduce_tf again");
  }
  *functions = &kFunctions;
  return absl::OkStatus();
}

}  // namespace deepreduce
