// Tests of plain C++ in one page: TEST("a sentence that holds") { CHECK(...); }. Run all with RunTests.
#ifndef DEEPREDUCE_TESTS_CHECK_H_
#define DEEPREDUCE_TESTS_CHECK_H_

#include <cstdio>
#include <cstring>
#include <vector>

namespace deepreduce::testing {

struct Test {
  const char* sentence;
  void (*run)();
};

inline std::vector<Test>& Tests() {
  static std::vector<Test> tests;
  return tests;
}

inline int& Failures() {
  static int failures = 0;
  return failures;
}

struct Registration {
  Registration(const char* sentence, void (*run)()) { Tests().push_back({sentence, run}); }
};

inline void Fail(const char* file, int line, const char* what) {
  // A wrong loop would fail a million times.
  if (++Failures() <= 5) std::printf("  %s:%d: not true: %s\n", file, line, what);
}

// Runs the tests whose sentence contains `filter`; returns how many failed.
inline int RunTests(const char* filter) {
  int passed = 0;
  int failed = 0;
  for (const Test& test : Tests()) {
    if (std::strstr(test.sentence, filter) == nullptr) continue;
    Failures() = 0;
    test.run();
    if (Failures() != 0) std::printf("FAILED (%d checks): %s\n", Failures(), test.sentence);
    ++(Failures() == 0 ? passed : failed);
  }
  std::printf("%d passed, %d failed\n", passed, failed);
  return failed;
}

}  // namespace deepreduce::testing

#define DEEPREDUCE_JOIN2(a, b) a##b
#define DEEPREDUCE_JOIN(a, b) DEEPREDUCE_JOIN2(a, b)
#define TEST(sentence)                                                                                                                 \
  static void DEEPREDUCE_JOIN(Test, __LINE__)();                                                                                       \
  static const ::deepreduce::testing::Registration DEEPREDUCE_JOIN(registration, __LINE__)(sentence, DEEPREDUCE_JOIN(Test, __LINE__)); \
  static void DEEPREDUCE_JOIN(Test, __LINE__)()
#define CHECK(condition) \
  if (!(condition)) ::deepreduce::testing::Fail(__FILE__, __LINE__, #condition)

#endif  // DEEPREDUCE_TESTS_CHECK_H_
