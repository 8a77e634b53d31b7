// Sizes and times of the codecs on one core. Prints; asserts nothing.
#include <time.h>

#include <algorithm>
#include <cstdio>

#include "deepreduce_tf/cc/lib/index/bloom_filter.h"
#include "tests/cc/plain_zlib.h"
#include "tests/cc/samples.h"

namespace deepreduce::testing {
namespace {

// Of this thread's own time, so that a busy machine disturbs less.
double Now() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return 1e9 * static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec);
}

template <class Work>
double BestNanoseconds(Work work) {
  double best = 1e18;
  for (int i = 0; i < 7; ++i) {
    const double start = Now();
    work();
    best = std::min(best, Now() - start);
  }
  return best;
}

double BoundBits(double size, double count) {
  return (std::lgamma(size + 1) - std::lgamma(count + 1) - std::lgamma(size - count + 1)) / std::log(2.0);
}

void BenchIndices(const IndexCodecEntry& entry, double density, int64_t columns = 1) {
  const IndexCodec& codec = *entry.codec;
  Segment segment;
  segment.size = 1000000;
  segment.columns = columns;
  Support indices = UniformSupport(segment.size, std::llround(density * static_cast<double>(segment.size)), 1);
  const double n = static_cast<double>(indices.size());
  Bytes room(4 * indices.size() + kSlack);
  size_t length = 0;
  const double encode = BestNanoseconds([&] { length = EncodeIndices(codec, segment, indices, room.data()); });
  const Bytes code(room.begin(), room.begin() + static_cast<std::ptrdiff_t>(length));
  bool ok = true;
  const double decode = BestNanoseconds([&] { ok &= Decode(codec, segment, code, &indices).ok(); });
  std::printf("%-12s %5.1f %%  %8.3f bits/index  %6.4f of the bound  encode %5.2f  decode %5.2f ns/index%s\n", entry.name, 100 * density,
              8.0 * static_cast<double>(length) / n, 8.0 * static_cast<double>(length) / BoundBits(1e6, n), encode / n, decode / n,
              ok ? "" : "  REFUSED");
}

// Per place of the dense form: the receivers of a filter ask it about each.
void BenchBloomFilter(int64_t size, double density, double rate) {
  const Segment segment = {size, 1, 2, 3};
  const Support given = UniformSupport(size, std::llround(density * static_cast<double>(size)), 1);
  const double n = static_cast<double>(size);
  Bytes code;
  Support support;
  bool ok = true;
  const auto encode = [&](BloomPolicy policy) {
    return BestNanoseconds([&] { ok &= EncodeBloomFilter(segment, given, {rate, policy}, &code, &support).ok(); });
  };
  const auto decode = [&] { return BestNanoseconds([&] { ok &= Decode(kBloomFilter, segment, code, &support).ok(); }); };
  const double encode_p0 = encode(BloomPolicy::kP0), decode_p0 = decode(), accepted = static_cast<double>(support.size());
  const double query = BestNanoseconds([&] { ok &= BloomReader().Open(segment, code, static_cast<int64_t>(given.size())).ok(); });
  const double encode_p2 = encode(BloomPolicy::kP2), decode_p2 = decode();
  std::printf("BloomFilter  %8lld places %4.1f %%  rate %5.3f (%.5f)  query %.3f  p0 %.3f %.3f  p2 %.3f %.3f ns/place%s\n",
              static_cast<long long>(size), 100 * density, rate, (accepted - density * n) / (n - density * n), query / n, encode_p0 / n,
              decode_p0 / n, encode_p2 / n, decode_p2 / n, ok ? "" : "  REFUSED");
}

void BenchValues(const ValueCodecEntry& entry, int bits, bool l2, const ValueCodecEntry* inner = nullptr) {
  const ValueCodec& codec = *entry.codec;
  ValueOptions options;
  options.bits = bits;
  options.l2_norm = l2;
  options.level = 1;
  if (inner != nullptr) options.inner = inner->id;
  options.deflate = Zlib();
  Values values = NormalValues(2500000, 3);
  const double n = static_cast<double>(values.size());
  Values decoded(values.size());
  Bytes room(4 * values.size() + kSlack);
  size_t length = 0;
  const double encode = BestNanoseconds([&] { length = EncodeValues(codec, options, values, room.data(), decoded.data()); });
  const Bytes code(room.begin(), room.begin() + static_cast<std::ptrdiff_t>(length));
  bool ok = true;
  const double decode = BestNanoseconds([&] { ok &= Decode(codec, options, code, &decoded).ok(); });
  double error = 0, norm = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    error += std::pow(values[i] - decoded[i], 2);
    norm += std::pow(values[i], 2);
  }
  if (inner != nullptr) std::printf("%-12s > ", inner->name);
  std::printf("%-12s %d bits%s  %7.3f bits/value  relative error %.5f  encode %6.2f  decode %5.2f ns/value%s\n", entry.name, bits,
              l2 ? " l2" : "   ", 8.0 * static_cast<double>(length) / n, std::sqrt(error / norm), encode / n, decode / n,
              ok ? "" : "  REFUSED");
}

}  // namespace
}  // namespace deepreduce::testing

int main() {
  using namespace deepreduce;
  using namespace deepreduce::testing;
  for (const IndexCodecEntry& entry : IndexCodecs()) {
    if (entry.codec == &kSeededSupport || entry.codec == &kBloomFilter) continue;
    for (double density : {0.001, 0.01, 0.1, 0.38, 0.5, 0.62, 0.9, 0.99}) BenchIndices(entry, density);
    if (entry.codec != &kAdaptive) continue;
    for (double density : {0.001, 0.01, 0.1, 0.38}) BenchIndices(entry, density, 1000);
  }
  for (int64_t size : {36864, 1000000, 25560000}) {
    for (double density : {0.01, 0.1}) {
      for (double rate : {0.001, 0.01, 0.1}) BenchBloomFilter(size, density, rate);
    }
  }
  for (const ValueCodecEntry& entry : ValueCodecs()) {
    if (entry.codec == &kDeflate) {
      for (const ValueCodecEntry& inner : ValueCodecs()) {
        if (inner.codec == &kFloat32 || inner.codec == &kQSGD || inner.codec == &kThreeLC) BenchValues(entry, 4, false, &inner);
      }
    } else if (entry.codec == &kQSGD || entry.codec == &kLogQuantizer || entry.codec == &kSketchML) {
      for (int bits : {2, 4, 8}) {
        BenchValues(entry, bits, false);
        if (entry.codec == &kQSGD) BenchValues(entry, bits, true);
      }
    } else {
      BenchValues(entry, 8, false);
    }
  }
}
