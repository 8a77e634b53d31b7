#ifndef DEEPREDUCE_LIB_BITS_ERROR_H_
#define DEEPREDUCE_LIB_BITS_ERROR_H_

#include <cstdint>

namespace deepreduce {

// What is wrong with some bytes, and at which byte of them. `name` is a literal; null means that nothing is.
struct [[nodiscard]] Error {
  const char* name = nullptr;
  int64_t position = 0;

  bool ok() const { return name == nullptr; }
};

}  // namespace deepreduce

#endif  // DEEPREDUCE_LIB_BITS_ERROR_H_
