// AllFinite at every CPU level.
#include "deepreduce_tf/cc/lib/bits/all_finite.h"

#include <cfloat>

#include "tests/cc/check.h"
#include "tests/cc/cpu_levels.h"
#include "tests/cc/samples.h"

namespace deepreduce::testing {
namespace {

TEST("AllFinite finds a single value that is not, wherever it is") {
  for (size_t size : {1u, 15u, 16u, 17u, 100u, 8192u, 8193u}) {
    Values values = AnyFinite(size, 1);
    CHECK(AllFinite(Span<const float>(values)));
    for (size_t place = 0; place < size; place += 1 + size / 40) {
      for (float bad : {static_cast<float>(NAN), static_cast<float>(INFINITY), static_cast<float>(-INFINITY)}) {
        const float good = values[place];
        values[place] = bad;
        CHECK(!AllFinite(Span<const float>(values)));
        values[place] = good;
      }
    }
  }
  CHECK(AllFinite(Span<const float>()));
}

TEST("Every CPU level finds what is not finite") {
  for (CpuLevel level : Levels()) {
    const AllFiniteFunction all_finite = FindAllFinite(level);
    for (size_t n : {0u, 1u, 7u, 8u, 9u, 15u, 16u, 17u, 31u, 33u, 100u, 1000u, 8191u, 8192u}) {
      for (const Values& gradient : {NormalValues(n, n), Tied(n, n, 3), AnyFinite(n, n), Values(n, -FLT_MAX)}) {
        CHECK(all_finite(gradient.data(), n));
        if (n == 0) continue;
        Values bad = gradient;
        bad[n / 2] = n % 2 == 0 ? -INFINITY : NAN;
        CHECK(!all_finite(bad.data(), n));
      }
    }
  }
  CHECK(FindAllFinite(CpuLevel::kPortable) != nullptr);
}

}  // namespace
}  // namespace deepreduce::testing
