// Limits that all codecs keep to.
#ifndef DEEPREDUCE_LIB_BITS_LIMITS_H_
#define DEEPREDUCE_LIB_BITS_LIMITS_H_

#include <cstddef>
#include <cstdint>

namespace deepreduce {

// Elements of the dense form of a segment.
constexpr int64_t kMaxSize = 0x7fffffff;
// Encoders may write this many bytes beyond the code they return (never beyond code.size + kSlack).
constexpr size_t kSlack = 16;
// An encoder's answer when its coded form would not be shorter than the raw one.
constexpr size_t kNotShorter = SIZE_MAX;

}  // namespace deepreduce

#endif  // DEEPREDUCE_LIB_BITS_LIMITS_H_
