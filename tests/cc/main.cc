// Runs the tests in several processes.
//   cc_tests [text]         those whose file or sentence contains the text, in any case
//   JOBS=1 cc_tests         in one process, as a debugger likes it; by default one for each core
//   SLOWEST=5 cc_tests      prints the five that took longest
#include <string.h>  // strcasestr
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <numeric>

#include "tests/cc/check.h"

namespace deepreduce::testing {
namespace {

enum class State { kWaiting, kRunning, kPassed, kFailed };

struct Outcome {
  State state = State::kWaiting;
  double seconds = 0;  // of its process, so that a busy machine disturbs less
};

// Memory of all processes.
template <class T>
T* Share(size_t n) {
  void* const memory = mmap(nullptr, (n + 1) * sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) std::abort();
  std::uninitialized_value_construct_n(static_cast<T*>(memory), n);
  return static_cast<T*>(memory);
}

// The tests of a run, and what became of them. A process takes the next one, and alone writes its outcome.
struct Run {
  std::vector<Test> tests;
  std::atomic<size_t>* next = Share<std::atomic<size_t>>(1);
  Outcome* outcomes = Share<Outcome>(tests.size());
};

int Number(const char* variable, long otherwise) {
  const char* const text = std::getenv(variable);
  return static_cast<int>(text == nullptr ? otherwise : std::atol(text));
}

std::vector<Test> Chosen(const char* text) {
  std::vector<Test> chosen;
  for (const Test& test : Tests()) {
    if (strcasestr(test.file, text) != nullptr || strcasestr(test.sentence, text) != nullptr) chosen.push_back(test);
  }
  return chosen;
}

// Takes tests until there are no more.
void Work(const Run& run) {
  for (size_t i = (*run.next)++; i < run.tests.size(); i = (*run.next)++) {
    Outcome& outcome = run.outcomes[i];
    outcome.state = State::kRunning;
    const std::clock_t start = std::clock();
    Failures() = 0;
    run.tests[i].run();
    outcome.seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    outcome.state = Failures() == 0 ? State::kPassed : State::kFailed;
    if (Failures() != 0) std::printf("FAILED (%d checks): %s\n", Failures(), run.tests[i].sentence);
    std::fflush(stdout);
  }
}

// Whether every process ended well; one that a sanitizer or a signal ended leaves its test running.
bool WorkInProcesses(const Run& run, int processes) {
  for (int i = 0; i < processes; ++i) {
    const pid_t child = fork();
    if (child < 0) std::abort();
    if (child > 0) continue;
    Work(run);
    std::exit(0);  // not _exit: the leak checker of AddressSanitizer runs at exit
  }
  bool well = true;
  for (int status = 0; wait(&status) > 0;) well &= status == 0;
  return well;
}

void PrintSlowest(const Run& run, size_t n) {
  std::vector<size_t> order(run.tests.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return run.outcomes[a].seconds > run.outcomes[b].seconds; });
  order.resize(std::min(n, order.size()));
  for (size_t i : order) std::printf("%6.2f s  %s\n", run.outcomes[i].seconds, run.tests[i].sentence);
}

bool RunAll(const char* text) {
  const Run run = {Chosen(text)};
  const int jobs = Number("JOBS", sysconf(_SC_NPROCESSORS_ONLN));
  bool well = true;
  if (jobs > 1) {
    well = WorkInProcesses(run, jobs);
  } else {
    Work(run);
  }
  size_t passed = 0;
  for (size_t i = 0; i < run.tests.size(); ++i) {
    const State state = run.outcomes[i].state;
    passed += state == State::kPassed;
    if (state == State::kRunning) std::printf("FAILED (ended its process): %s\n", run.tests[i].sentence);
  }
  PrintSlowest(run, static_cast<size_t>(Number("SLOWEST", 0)));
  std::printf("%zu passed, %zu failed\n", passed, run.tests.size() - passed);
  return well && passed == run.tests.size();
}

}  // namespace
}  // namespace deepreduce::testing

int main(int argc, char** argv) { return deepreduce::testing::RunAll(argc > 1 ? argv[1] : "") ? 0 : 1; }
