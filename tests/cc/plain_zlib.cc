#include "tests/cc/plain_zlib.h"

#include <dlfcn.h>

#include <cstdio>

namespace deepreduce::testing {
namespace {

// From zlib.h; a part of its stable interface.
using Compress2 = int (*)(uint8_t* out, unsigned long* out_length, const uint8_t* bytes, unsigned long length, int level);
using Uncompress2 = int (*)(uint8_t* out, unsigned long* out_length, const uint8_t* stream, unsigned long* length);

Compress2 compress2;
Uncompress2 uncompress2;

size_t Deflate(Span<const uint8_t> bytes, int level, Span<uint8_t> out) {
  unsigned long length = out.size;
  return compress2(out.data, &length, bytes.data, bytes.size, level) == 0 ? length : kNotShorter;
}

bool Inflate(Span<const uint8_t> stream, Span<uint8_t> out, size_t* length) {
  unsigned long produced = out.size;
  unsigned long read = stream.size;
  const bool whole = uncompress2(out.data, &produced, stream.data, &read) == 0 && read == stream.size;
  *length = produced;
  return whole;
}

const DeflateFunctions* Load() {
  static const DeflateFunctions functions = {Deflate, Inflate};
  void* library = dlopen("libz.so.1", RTLD_NOW);
  if (library != nullptr) {
    compress2 = reinterpret_cast<Compress2>(dlsym(library, "compress2"));
    uncompress2 = reinterpret_cast<Uncompress2>(dlsym(library, "uncompress2"));
  }
  if (compress2 != nullptr && uncompress2 != nullptr) return &functions;
  std::printf("no libz.so.1 here: Deflate's streams are not tested (%s)\n", library == nullptr ? dlerror() : "too old");
  return nullptr;
}

}  // namespace

const DeflateFunctions* Zlib() {
  static const DeflateFunctions* const functions = Load();
  return functions;
}

}  // namespace deepreduce::testing
