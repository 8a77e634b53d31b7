// Selection against a plain sort; the one pass over a gradient at every CPU level against plain loops.
#include "deepreduce_tf/cc/lib/select/select.h"

#include <algorithm>
#include <cfloat>
#include <numeric>

#include "deepreduce_tf/cc/lib/bits/all_finite.h"
#include "deepreduce_tf/cc/lib/bits/float_bits.h"
#include "deepreduce_tf/cc/lib/select/collect.h"
#include "tests/cc/check.h"
#include "tests/cc/cpu_levels.h"
#include "tests/cc/samples.h"

namespace deepreduce::testing {
namespace {

constexpr float kDenormal = 1e-41f;

// residual + gradient in double, which is exact enough to round once; saturated.
Values PlainAcc(const Values& residual, const Values& gradient) {
  Values acc = gradient;
  for (size_t i = 0; i < residual.size(); ++i) {
    const double sum = static_cast<double>(residual[i]) + static_cast<double>(gradient[i]);
    acc[i] = static_cast<float>(std::min<double>(FLT_MAX, std::max<double>(-FLT_MAX, sum)));
  }
  return acc;
}

// All places, the largest magnitudes first, the lower places first among equals.
Support PlainOrder(const Values& acc) {
  Support order(acc.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    return MagnitudeBits(acc[static_cast<size_t>(a)]) > MagnitudeBits(acc[static_cast<size_t>(b)]);
  });
  return order;
}

// The first `count` of an order, ascending.
Support Ascending(const Support& order, int64_t count) {
  std::vector<bool> kept(order.size());
  for (int64_t i = 0; i < count; ++i) kept[static_cast<size_t>(order[static_cast<size_t>(i)])] = true;
  Support places;
  for (size_t i = 0; i < kept.size(); ++i) {
    if (kept[i]) places.push_back(static_cast<int32_t>(i));
  }
  return places;
}

bool SameBits(const Values& a, const Values& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), 4 * a.size()) == 0);
}

bool HoldsAt(const Values& kept, const Values& acc, const Support& places) {
  for (size_t i = 0; i < places.size(); ++i) {
    if (BitsOf(kept[i]) != BitsOf(acc[static_cast<size_t>(places[i])])) return false;
  }
  return kept.size() == places.size();
}

// One scratch for all, as a thread has.
SelectScratch scratch;

// With and without a residual; an empty one stands for zeros.
void CheckTopK(const Values& gradient, const std::vector<int64_t>& counts, Values residual = {}) {
  if (residual.empty()) residual.assign(gradient.size(), 0.0f);
  for (bool feedback : {false, true}) {
    const Values acc = feedback ? PlainAcc(residual, gradient) : gradient;
    const Support order = PlainOrder(acc);
    for (int64_t count : counts) {
      const Support expected = Ascending(order, count);
      Support indices(static_cast<size_t>(count), -1);
      Values kept(static_cast<size_t>(count)), left = residual;
      SelectTopK(feedback ? left.data() : nullptr, gradient, count, &scratch, indices.data(), kept.data());
      CHECK(indices == expected);
      CHECK(HoldsAt(kept, acc, expected));
      if (feedback) CHECK(SameBits(left, acc));
    }
  }
}

Values Same(size_t n, float value) { return Values(n, value); }

Values HeavyTailed(size_t n, uint64_t seed) {
  Values values = NormalValues(n, seed);
  for (size_t i = 0; i < n; ++i) values[i] /= static_cast<float>(std::pow(Uniform(seed + 1, i), 1.5));
  return values;
}

std::vector<int64_t> Counts(size_t size) {
  std::vector<int64_t> counts;
  for (double ratio : {1e-6, 1e-4, 0.001, 0.01, 0.1, 0.25, 0.5, 0.9, 0.999, 1.0}) {
    counts.push_back(std::max<int64_t>(1, std::llround(ratio * static_cast<double>(size))));
  }
  counts.push_back(static_cast<int64_t>(size) - 1);
  counts.push_back(0);
  return counts;
}

TEST("TopK is exact for every size from 1 to 3000") {
  for (size_t size = 1; size <= 3000; ++size) {
    const int64_t n = static_cast<int64_t>(size);
    const Values residual = size % 2 == 0 ? NormalValues(size, size + 1) : Values();
    CheckTopK(NormalValues(size, size), {std::max<int64_t>(1, n / 100)}, residual);
    if (size % 7 == 0) CheckTopK(Tied(size, size, 5), {1 + n / 3}, residual);
  }
}

TEST("TopK is exact at every ratio, on values of every kind") {
  for (size_t size : {1u, 2u, 17u, 1024u, 1025u, 2048u, 9000u, 20011u}) {
    for (uint64_t different : {1, 2, 3, 50}) CheckTopK(Tied(size, size, different), Counts(size));
    for (float same : {-0.25f, 0.0f, kDenormal}) CheckTopK(Same(size, same), Counts(size));
    CheckTopK(HeavyTailed(size, size), Counts(size), NormalValues(size, 3));
    CheckTopK(AnyFinite(size, size), Counts(size));
  }
}

TEST("TopK is exact on large segments") {
  CheckTopK(NormalValues(100000, 8), Counts(100000), NormalValues(100000, 9));
  CheckTopK(HeavyTailed(1000000, 10), {1, 1000, 10000, 100000, 400000}, NormalValues(1000000, 11));
}

TEST("Among equal magnitudes TopK keeps the lower places") {
  Support indices(3);
  Values kept(3);
  const Values gradient = {1, -2, 2, 0, -2, 2};
  SelectTopK(nullptr, gradient, 3, &scratch, indices.data(), kept.data());
  CHECK(indices == (Support{1, 2, 4}));
  CHECK(kept == (Values{-2, 2, -2}));
}

TEST("TopK is exact where its sample misleads") {
  constexpr size_t kSize = 100000;
  Values all_in_one_place = NormalValues(kSize, 4), rising(kSize), falling(kSize), every_16th(kSize, 0.001f), few(kSize, 0.0f);
  for (size_t i = 0; i < kSize; ++i) {
    if (i >= 70000 && i < 71000) all_in_one_place[i] += 100.0f;
    rising[i] = static_cast<float>(i) * (i % 2 == 0 ? 1.0f : -1.0f);
    falling[i] = static_cast<float>(kSize - i);
    if (i % 16 == 5) every_16th[i] = 1.0f + static_cast<float>(i % 7);
    if (i % 997 == 0) few[i] = 1.0f;
  }
  for (const Values& values : {all_in_one_place, rising, falling, every_16th, few}) {
    CheckTopK(values, Counts(kSize));
    CheckTopK(values, {900, 1000, 1100, 6249, 6250, 6251});
  }
}

TEST("Sums beyond the largest float saturate, and stay finite over many steps") {
  for (size_t size : {5u, 3000u}) {
    Values gradient(size), residual(size, 0.0f);
    for (size_t i = 0; i < size; ++i) gradient[i] = i % 3 == 0 ? FLT_MAX : i % 3 == 1 ? -FLT_MAX : 1.0f;
    for (int step = 0; step < 4; ++step) {
      CheckTopK(gradient, {2}, residual);
      Accumulate(residual.data(), gradient);
      CHECK(AllFinite(residual));
    }
    CHECK(residual[0] == FLT_MAX && residual[1] == -FLT_MAX && residual[2] == 4.0f);
    for (float& x : gradient) x = -x;
    Accumulate(residual.data(), gradient);
    CHECK(residual[0] == 0.0f && residual[1] == 0.0f && residual[2] == 3.0f);
  }
}

TEST("Without a residual TopK puts NaN before infinity before all finite values") {
  for (size_t size : {40u, 5000u}) {
    for (size_t place : {size_t{0}, size / 2, size - 1}) {
      Values gradient = NormalValues(size, 2);
      gradient[place] = NAN;
      gradient[3] = -INFINITY;
      gradient[4] = FLT_MAX;
      for (size_t count : {1u, 2u, 3u}) {
        Support indices(count);
        Values kept(count);
        SelectTopK(nullptr, gradient, static_cast<int64_t>(count), &scratch, indices.data(), kept.data());
        CHECK(indices == Ascending(PlainOrder(gradient), static_cast<int64_t>(count)));
        CHECK(std::any_of(kept.begin(), kept.end(), [](float x) { return std::isnan(x); }));
        CHECK(count < 2 || std::count(kept.begin(), kept.end(), -INFINITY) == 1);
      }
    }
  }
}

TEST("SelectThreshold keeps exactly the magnitudes at and above the threshold") {
  for (size_t size : {0u, 1u, 16u, 1000u, 8192u, 30001u}) {
    for (float threshold : {1.4e-45f, kDenormal, 0.005f, 0.01f, 0.5f, 1.0f, 2.0f, FLT_MAX}) {
      for (const Values& gradient : {NormalValues(size, 6), Tied(size, 7, 4), AnyFinite(size, 8)}) {
        for (bool feedback : {false, true}) {
          Values residual = NormalValues(size, 9);
          const Values acc = feedback ? PlainAcc(residual, gradient) : gradient;
          Support expected;
          for (size_t i = 0; i < size; ++i) {
            if (MagnitudeBits(acc[i]) >= MagnitudeBits(threshold)) expected.push_back(static_cast<int32_t>(i));
          }
          const size_t found = SelectThreshold(feedback ? residual.data() : nullptr, gradient, threshold, &scratch);
          CHECK(Support(scratch.indices.get(), scratch.indices.get() + found) == expected);
          CHECK(HoldsAt(Values(scratch.values.get(), scratch.values.get() + found), acc, expected));
          if (feedback) CHECK(SameBits(residual, acc));
        }
      }
    }
  }
}

TEST("SelectSupport gives acc at the support and leaves acc in the residual") {
  const Values gradient = NormalValues(5000, 1);
  for (bool feedback : {false, true}) {
    Values residual = NormalValues(5000, 2), kept(50);
    const Values acc = feedback ? PlainAcc(residual, gradient) : gradient;
    const Support support = UniformSupport(5000, 50, 3);
    SelectSupport(feedback ? residual.data() : nullptr, gradient, support, kept.data());
    CHECK(HoldsAt(kept, acc, support));
    if (feedback) CHECK(SameBits(residual, acc));
  }
}

TEST("Every CPU level collects and accumulates exactly as plain loops do") {
  for (CpuLevel level : Levels()) {
    const CollectFunctions& f = *FindCollectFunctions(level);
    for (size_t n : {0u, 1u, 7u, 8u, 9u, 15u, 16u, 17u, 31u, 33u, 100u, 1000u, 8191u, 8192u}) {
      for (const Values& gradient : {NormalValues(n, n), Tied(n, n, 3), AnyFinite(n, n), Same(n, -FLT_MAX)}) {
        const Values residual = n % 2 == 0 ? AnyFinite(n, 99) : Same(n, -FLT_MAX);
        const Values acc = PlainAcc(residual, gradient);
        Values both = residual, alone = residual;
        f.accumulate(alone.data(), gradient.data(), n);
        CHECK(SameBits(alone, acc));
        for (float least : {0.0f, kDenormal, 0.01f, 0.5f, 1.0f, FLT_MAX}) {
          Support expected;
          for (size_t i = 0; i < n; ++i) {
            if (MagnitudeBits(acc[i]) >= MagnitudeBits(least)) expected.push_back(static_cast<int32_t>(i) + 1000);
          }
          // At their exact size on the heap, so that sanitizers see a write beyond it.
          Support indices(n + kCollectSlack);
          Values kept(n + kCollectSlack);
          const auto check = [&](size_t found) {
            CHECK(found == expected.size());
            for (size_t i = 0; i < std::min(found, expected.size()); ++i) {
              CHECK(indices[i] == expected[i] && BitsOf(kept[i]) == BitsOf(acc[static_cast<size_t>(expected[i] - 1000)]));
            }
          };
          const uint32_t bits = BitsOf(least);
          both = residual;
          check(f.accumulate_and_collect(both.data(), gradient.data(), n, 1000, bits, indices.data(), kept.data()));
          CHECK(SameBits(both, acc));
          check(f.collect(acc.data(), n, 1000, bits, indices.data(), kept.data()));
        }
      }
    }
  }
}

TEST("The portable level is always there, and the best level is one that this CPU has") {
  CHECK(FindCollectFunctions(CpuLevel::kPortable) != nullptr);
  CHECK(Runs(BestCpuLevel()));
  CHECK(&BestCollectFunctions() == FindCollectFunctions(BestCpuLevel()));
}

}  // namespace
}  // namespace deepreduce::testing
