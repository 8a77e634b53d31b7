#include "tests/cc/check.h"

// An argument selects the tests whose sentence contains it.
int main(int argc, char** argv) { return deepreduce::testing::RunTests(argc > 1 ? argv[1] : "") == 0 ? 0 : 1; }
