// A histogram of magnitudes, fine enough to place the ends of buckets in it, and small enough to walk over again and again.
#ifndef DEEPREDUCE_LIB_VALUE_MAGNITUDE_CELLS_H_
#define DEEPREDUCE_LIB_VALUE_MAGNITUDE_CELLS_H_

#include <cstddef>
#include <cstdint>

#include "deepreduce_tf/cc/lib/bits/buffer.h"
#include "deepreduce_tf/cc/lib/bits/float_bits.h"
#include "deepreduce_tf/cc/lib/bits/span.h"

namespace deepreduce {

// Magnitudes whose bits agree above some bit of the mantissa, so they lie in one octave.
struct MagnitudeCell {
  uint64_t low = 0;  // sum of the bits below
  uint32_t count = 0;
  uint32_t negative = 0;  // values of the count
  uint32_t bucket = 0;
};

// The magnitudes from 2^-126 on; those below count as zeros.
class MagnitudeCells {
 public:
  // All values are finite. False when there is no memory.
  bool Fill(Span<const float> values);

  uint32_t zeros() const { return zeros_; }
  uint64_t count() const { return count_; }  // without zeros
  Span<MagnitudeCell> cells() const { return {cells_.get(), size_}; }
  // The cell of a magnitude, given by its bits, that is among the values.
  const MagnitudeCell& Of(int32_t bits) const { return cells_[static_cast<size_t>((bits >> shift_) - first_)]; }

  // Sorts the cells into ascending buckets, at most as many as given, a power of two. There is at least one magnitude.
  void PlaceBuckets(int buckets);
  // Numbers the buckets from 0 on without those that are empty, and gives their means; returns how many there are.
  int MeansOfBuckets(double* means);

 private:
  void PlaceGeometrically(int buckets);
  void MoveToNearestMean();

  uint32_t Bits(size_t cell) const { return static_cast<uint32_t>(first_ + static_cast<int32_t>(cell)) << shift_; }
  double Lowest(size_t cell) const { return static_cast<double>(FloatOf(Bits(cell))); }
  // The distance of neighbouring floats.
  double Step(size_t cell) const { return 0x1p-23 * static_cast<double>(FloatOf(Bits(cell) & static_cast<uint32_t>(kInfinityBits))); }

  Buffer<MagnitudeCell> cells_;
  size_t size_ = 0;
  uint64_t count_ = 0;
  uint32_t zeros_ = 0;
  int shift_ = 0;      // bits of a magnitude that do not choose the cell
  int32_t first_ = 0;  // of the bits that do, those of cell 0
};

}  // namespace deepreduce

#endif  // DEEPREDUCE_LIB_VALUE_MAGNITUDE_CELLS_H_
