// A small mutation fuzzer for compilers without libFuzzer: it keeps inputs that reach new code of the library, which GCC reports through
// -fsanitize-coverage=trace-pc. Understands libFuzzer's -max_total_time=SECONDS and -max_len=BYTES; other arguments are inputs to run.
#include <sanitizer/common_interface_defs.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>

#include "tests/cc/fuzz/fuzz.h"

namespace {

constexpr size_t kCounters = 1 << 12;
uint8_t reached[kCounters];  // since the start of this input
uint8_t known[kCounters];
uintptr_t previous_block;

}  // namespace

// AddressSanitizer reports aborts too, so that SaveCurrent sees broken promises.
extern "C" const char* __asan_default_options() { return "handle_abort=1"; }

// Called by the instrumented library at each basic block; the pair of blocks is what counts.
extern "C" void __sanitizer_cov_trace_pc() {
  const uintptr_t block = reinterpret_cast<uintptr_t>(__builtin_return_address(0)) * 0x9e3779b97f4a7c15ull >> 48;
  uint8_t& times = reached[(block ^ previous_block >> 1) % kCounters];
  if (times < 255) ++times;
  previous_block = block;
}

namespace deepreduce::testing {
namespace {

const FuzzTarget* target;
Bytes current;

void SaveCurrent() {
  const std::string path = std::string("crash-") + target->name;
  std::ofstream(path, std::ios::binary).write(reinterpret_cast<const char*>(current.data()), static_cast<std::streamsize>(current.size()));
  std::fprintf(stderr, "%s: the input is in %s; run it with FUZZ_TARGET=%s and the file as argument\n", target->name, path.c_str(),
               target->name);
}

// Whether the input reached something new: another pair of blocks, or one of them more often by a power of two.
bool Run(const Bytes& input) {
  current = input;
  std::memset(reached, 0, sizeof reached);
  previous_block = 0;
  target->run(current);
  bool fresh = false;
  for (size_t i = 0; i < kCounters; ++i) {
    if (reached[i] == 0) continue;
    const uint8_t magnitude = static_cast<uint8_t>(1 << (31 - __builtin_clz(reached[i])));
    fresh |= (known[i] & magnitude) == 0;
    known[i] |= magnitude;
  }
  return fresh;
}

class Mutator {
 public:
  Bytes Mutate(const std::vector<Bytes>& corpus, size_t max_length) {
    Bytes bytes = corpus[Draw(corpus.size())];
    for (size_t edits = 1 + Draw(4); edits > 0; --edits) Edit(corpus, &bytes);
    if (bytes.size() > max_length) bytes.resize(max_length);
    return bytes;
  }

 private:
  size_t Draw(size_t below) { return static_cast<size_t>(RandomBits(2024, draws_++) % below); }

  void Edit(const std::vector<Bytes>& corpus, Bytes* bytes) {
    static constexpr uint8_t kEdges[] = {0x00, 0xff, 0x01, 0x7f, 0x80, 0xfe, 0x3f, 0x40};
    // Headers say more than the rest.
    const size_t at = bytes->empty() ? 0 : Draw(Draw(2) == 0 ? std::min<size_t>(bytes->size(), 16) : bytes->size());
    const auto position = bytes->begin() + static_cast<std::ptrdiff_t>(at);
    switch (bytes->empty() ? 5 : Draw(8)) {
      case 0:
        (*bytes)[at] ^= static_cast<uint8_t>(1 << Draw(8));
        break;
      case 1:
        (*bytes)[at] = static_cast<uint8_t>(Draw(256));
        break;
      case 2:
        (*bytes)[at] = kEdges[Draw(8)];
        break;
      case 3:
        (*bytes)[at] = static_cast<uint8_t>((*bytes)[at] + Draw(9) - 4);
        break;
      case 4:
        bytes->resize(at);
        break;
      case 5:
        bytes->insert(position, 1 + Draw(16), kEdges[Draw(8)]);
        break;
      case 6:
        bytes->erase(position, position + static_cast<std::ptrdiff_t>(1 + Draw(std::min<size_t>(8, bytes->size() - at))));
        break;
      default: {
        const Bytes& other = corpus[Draw(corpus.size())];
        if (other.size() > at) bytes->assign(other.begin(), other.end());
        break;
      }
    }
  }

  uint64_t draws_ = 0;
};

void Fuzz(double seconds, size_t max_length) {
  std::vector<Bytes> corpus = target->seeds();
  for (const Bytes& seed : corpus) Run(seed);
  const size_t seeds = corpus.size();
  Mutator mutator;
  const auto start = std::chrono::steady_clock::now();
  uint64_t runs = 0;
  for (; std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() < seconds; ++runs) {
    Bytes input = mutator.Mutate(corpus, max_length);
    if (Run(input)) corpus.push_back(std::move(input));
  }
  std::printf("%-14s %9lu inputs, %4zu seeds, %4zu more reached new code; every promise held\n", target->name,
              static_cast<unsigned long>(runs), seeds, corpus.size() - seeds);
}

}  // namespace
}  // namespace deepreduce::testing

int main(int argc, char** argv) {
  using namespace deepreduce::testing;
  target = &ChosenFuzzTarget();
  double seconds = 10;
  size_t max_length = 4096;
  bool files = false;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument.rfind("-max_total_time=", 0) == 0) {
      seconds = std::atof(argv[i] + 16);
    } else if (argument.rfind("-max_len=", 0) == 0) {
      max_length = static_cast<size_t>(std::atol(argv[i] + 9));
    } else {
      files = true;
      std::ifstream file(argument, std::ios::binary);
      Run(Bytes(std::istreambuf_iterator<char>(file), {}));
    }
  }
  if (files) return 0;
  __sanitizer_set_death_callback(SaveCurrent);
  Fuzz(seconds, max_length);
  return 0;
}
