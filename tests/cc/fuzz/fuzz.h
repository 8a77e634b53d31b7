// What a fuzz target is. A file tests/cc/fuzz_*.cc registers its targets; the driver and the Makefile find them by name.
#ifndef DEEPREDUCE_TESTS_FUZZ_FUZZ_H_
#define DEEPREDUCE_TESTS_FUZZ_FUZZ_H_

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "tests/cc/samples.h"

namespace deepreduce::testing {

struct FuzzTarget {
  const char* name;
  void (*run)(Span<const uint8_t> input);  // any bytes; aborts when a promise does not hold
  std::vector<Bytes> (*seeds)();           // inputs made from real encodings
};

inline std::vector<FuzzTarget>& FuzzTargets() {
  static std::vector<FuzzTarget> targets;
  return targets;
}

struct FuzzRegistration {
  explicit FuzzRegistration(const FuzzTarget& target) { FuzzTargets().push_back(target); }
};

// The target that the environment variable FUZZ_TARGET names. "list" prints all names and ends the process.
const FuzzTarget& ChosenFuzzTarget();

// Reads a number off the front of an input, zero bytes where it has ended.
template <class T>
T Take(Span<const uint8_t>* input) {
  T value = 0;
  const size_t length = std::min(sizeof value, input->size);
  if (length != 0) std::memcpy(&value, input->data, length);
  *input = input->subspan(length, input->size - length);
  return value;
}

template <class T>
void Append(T value, Bytes* out) {
  const uint8_t* bytes = reinterpret_cast<const uint8_t*>(&value);
  out->insert(out->end(), bytes, bytes + sizeof value);
}

// On the heap at exactly its length, so that sanitizers see a read beyond it.
inline Bytes Copy(Span<const uint8_t> input) { return Bytes(input.begin(), input.end()); }

inline void Require(bool promise, const char* what) {
  if (promise) return;
  std::fprintf(stderr, "broken promise: %s\n", what);
  std::abort();
}

}  // namespace deepreduce::testing

#endif  // DEEPREDUCE_TESTS_FUZZ_FUZZ_H_
