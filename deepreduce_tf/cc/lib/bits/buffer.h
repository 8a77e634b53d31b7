// Memory that an encoder or decoder needs beside its input and output.
#ifndef DEEPREDUCE_LIB_BITS_BUFFER_H_
#define DEEPREDUCE_LIB_BITS_BUFFER_H_

#include <cstddef>
#include <memory>
#include <new>

namespace deepreduce {

template <class T>
using Buffer = std::unique_ptr<T[]>;

// Both give null when memory is out; the caller turns that into an error.

// Elements as `new` leaves them: numbers are not initialised.
template <class T>
Buffer<T> AllocateBuffer(size_t n) {
  return Buffer<T>(new (std::nothrow) T[n]);
}

template <class T>
Buffer<T> AllocateZeros(size_t n) {
  return Buffer<T>(new (std::nothrow) T[n]());
}

}  // namespace deepreduce

#endif  // DEEPREDUCE_LIB_BITS_BUFFER_H_
