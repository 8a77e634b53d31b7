// The entry points of libFuzzer. Seeds are added to the corpus by the mutator's hook, so no files are needed.
#include <algorithm>
#include <cstring>

#include "tests/cc/fuzz/fuzz.h"

namespace {

const deepreduce::testing::FuzzTarget* target;
std::vector<deepreduce::testing::Bytes> seeds;

}  // namespace

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  target = &deepreduce::testing::ChosenFuzzTarget();
  seeds = target->seeds();
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  target->run({data, size});
  return 0;
}

// Now and then starts from a seed instead of from the corpus.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned draw) {
  if (draw % 16 == 0) {
    const auto& seed = seeds[draw / 16 % seeds.size()];
    size = std::min(seed.size(), max_size);
    std::memcpy(data, seed.data(), size);
  }
  return LLVMFuzzerMutate(data, size, max_size);
}
