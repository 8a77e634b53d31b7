// Whether a decoder refuses a code with the error that is expected; prints what it said otherwise.
#ifndef DEEPREDUCE_TESTS_REFUSES_H_
#define DEEPREDUCE_TESTS_REFUSES_H_

#include <cstdio>
#include <cstring>

#include "tests/cc/samples.h"

namespace deepreduce::testing {

// In place of a position that is not compared.
constexpr int64_t kAnywhere = -1;

inline bool IsError(const Error& error, const char* name, int64_t position = kAnywhere) {
  const bool same = error.name != nullptr && std::strcmp(error.name, name) == 0 && (position == kAnywhere || error.position == position);
  if (!same) std::printf("  got: %s at byte %ld\n", error.ok() ? "accepted" : error.name, static_cast<long>(error.position));
  return same;
}

inline bool Refuses(const IndexCodec& codec, int64_t size, size_t count, const Bytes& code, const char* name,
                    int64_t position = kAnywhere) {
  Segment segment;
  segment.size = size;
  Support indices(count);
  return IsError(Decode(codec, segment, code, &indices), name, position);
}

inline bool Refuses(const ValueCodec& codec, const ValueOptions& options, size_t n, const Bytes& code, const char* name,
                    int64_t position = kAnywhere) {
  Values values(n);
  return IsError(Decode(codec, options, code, &values), name, position);
}

}  // namespace deepreduce::testing

#endif  // DEEPREDUCE_TESTS_REFUSES_H_
