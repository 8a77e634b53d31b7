#include "deepreduce_tf/cc/lib/value/magnitude_cells.h"

#include <algorithm>
#include <cmath>

namespace deepreduce {
namespace {

// Two rounds gain most of what twenty do.
constexpr int kRounds = 2;
constexpr int kMaxBuckets = 256;
// With 8192 cells each of 256 buckets has some to choose its ends from. Few values do not pay for walking over so many.
constexpr size_t kFewestCells = 1024, kMaxCells = 8192;

}  // namespace

bool MagnitudeCells::Fill(Span<const float> values) {
  int32_t lowest = kMagnitudeBits, highest = 0;
  for (float value : values) {
    const int32_t bits = MagnitudeBits(value);
    const bool zero = bits < kSmallestNormalBits;
    zeros_ += zero;
    lowest = std::min(lowest, zero ? kMagnitudeBits : bits);
    highest = std::max(highest, bits);
  }
  count_ = values.size - zeros_;
  if (count_ == 0) return true;
  const int32_t most = static_cast<int32_t>(std::clamp(values.size, kFewestCells, kMaxCells));
  while ((highest >> shift_) - (lowest >> shift_) >= most) ++shift_;
  first_ = lowest >> shift_;
  size_ = static_cast<size_t>((highest >> shift_) - first_) + 1;
  cells_ = AllocateBuffer<MagnitudeCell>(size_);
  if (cells_ == nullptr) return false;
  for (float value : values) {
    const int32_t bits = MagnitudeBits(value);
    if (bits < kSmallestNormalBits) continue;
    MagnitudeCell& cell = cells_[static_cast<size_t>((bits >> shift_) - first_)];
    cell.low += static_cast<uint32_t>(bits) & ((1u << shift_) - 1);
    cell.negative += BitsOf(value) >> 31;
    ++cell.count;
  }
  return true;
}

void MagnitudeCells::PlaceBuckets(int buckets) {
  uint32_t occupied = 0;
  for (MagnitudeCell& cell : cells()) {
    cell.bucket = occupied;
    occupied += cell.count != 0;
  }
  if (occupied <= static_cast<uint32_t>(buckets)) return;
  PlaceGeometrically(buckets);
  for (int round = 0; round < kRounds; ++round) MoveToNearestMean();
}

// The shares of the buckets fall by a factor, that of the last one to about one value. Where magnitudes fall off exponentially, as those of
// a gradient do, all buckets are then equally wide, which with a Huffman code gives the least error for its bytes; with heavier tails they
// widen.
void MagnitudeCells::PlaceGeometrically(int buckets) {
  const double n = static_cast<double>(count_);
  double factor = 1 / n;
  for (int b = buckets; b > 1; b /= 2) factor = std::sqrt(factor);
  double told = 0, power = factor;
  int bucket = 0;
  for (MagnitudeCell& cell : cells()) {
    for (; bucket + 1 < buckets && told >= n * (1 - power) / (1 - 1 / n); power *= factor) ++bucket;
    cell.bucket = static_cast<uint32_t>(bucket);
    told += cell.count;
  }
}

// One round of Lloyd's method ("Least squares quantization in PCM", IEEE Transactions on Information Theory 28, 1982).
void MagnitudeCells::MoveToNearestMean() {
  double means[kMaxBuckets];
  const int buckets = MeansOfBuckets(means);
  int bucket = 0;
  for (size_t i = 0; i < size_; ++i) {
    const double middle = Lowest(i) + Step(i) * static_cast<double>((1u << shift_) / 2);
    while (bucket + 1 < buckets && 2 * middle > means[bucket] + means[bucket + 1]) ++bucket;
    cells_[i].bucket = static_cast<uint32_t>(bucket);
  }
}

int MagnitudeCells::MeansOfBuckets(double* means) {
  int n = 0;
  for (size_t i = 0; i < size_;) {
    const uint32_t bucket = cells_[i].bucket;
    double sum = 0, count = 0;
    for (; i < size_ && cells_[i].bucket == bucket; ++i) {
      cells_[i].bucket = static_cast<uint32_t>(n);
      if (cells_[i].count == 0) continue;
      count += cells_[i].count;
      sum += cells_[i].count * Lowest(i) + Step(i) * static_cast<double>(cells_[i].low);
    }
    if (count != 0) means[n++] = sum / count;
  }
  return n;
}

}  // namespace deepreduce
