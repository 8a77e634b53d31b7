// Tests of plain C++ in one page: TEST("a sentence that holds") { CHECK(...); }. Run all with RunTests (tests/cc/main.cc).
#ifndef DEEPREDUCE_TESTS_CHECK_H_
#define DEEPREDUCE_TESTS_CHECK_H_

#include <cstdio>
#include <vector>

namespace deepreduce::testing {

struct Test {
  const char* file;
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
  Registration(const char* file, const char* sentence, void (*run)()) { Tests().push_back({file, sentence, run}); }
};

inline void Fail(const char* file, int line, const char* what) {
  // A wrong loop fails at each of its iterations.
  if (++Failures() <= 5) std::printf("  %s:%d: not true: %s\n", file, line, what);
}

}  // namespace deepreduce::testing

#define DEEPREDUCE_JOIN2(a, b) a##b
#define DEEPREDUCE_JOIN(a, b) DEEPREDUCE_JOIN2(a, b)
#define TEST(sentence)                                                                                                       \
  static void DEEPREDUCE_JOIN(Test, __LINE__)();                                                                             \
  static const ::deepreduce::testing::Registration DEEPREDUCE_JOIN(registration, __LINE__)(__FILE__, sentence,               \
                                                                                           DEEPREDUCE_JOIN(Test, __LINE__)); \
  static void DEEPREDUCE_JOIN(Test, __LINE__)()
#define CHECK(condition) \
  if (!(condition)) ::deepreduce::testing::Fail(__FILE__, __LINE__, #condition)

#endif  // DEEPREDUCE_TESTS_CHECK_H_
