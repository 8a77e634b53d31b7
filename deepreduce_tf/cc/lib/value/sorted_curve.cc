#include "deepreduce_tf/cc/lib/value/sorted_curve.h"

#include <algorithm>

#include "deepreduce_tf/cc/lib/bits/bit_stream.h"
#include "deepreduce_tf/cc/lib/bits/buffer.h"
#include "deepreduce_tf/cc/lib/bits/float_bits.h"
#include "deepreduce_tf/cc/lib/bits/limits.h"
#include "deepreduce_tf/cc/lib/bits/raw_indices.h"
#include "deepreduce_tf/cc/lib/value/descending_order.h"
#include "deepreduce_tf/cc/lib/value/double_exponential.h"
#include "deepreduce_tf/cc/lib/value/level_packing.h"  // kBlock

namespace deepreduce {
namespace {

constexpr size_t kHeadersOffset = 1;  // byte at which the heads of the pieces begin
constexpr int kFitBits = 2;
constexpr int kHeaderBits = kFitBits + 1;  // and the bits of a length

// Where the parts of a code begin.
struct Layout {
  int width;  // bits of a place, and of the length of a piece
  size_t numbers;
  size_t places;
  size_t end;

  Layout(size_t values, size_t pieces, size_t numbers_of_pieces) : width(IndexWidth(static_cast<int64_t>(values))) {
    numbers = kHeadersOffset + (pieces * static_cast<size_t>(kHeaderBits + width) + 7) / 8;
    places = numbers + sizeof(float) * numbers_of_pieces;
    end = places + (values * static_cast<size_t>(width) + 7) / 8;
  }
};

Layout LayoutOf(size_t values, Span<const FittedPiece> pieces, int degree) {
  size_t numbers = 0;
  for (const FittedPiece& piece : pieces) numbers += piece.Numbers(degree);
  return Layout(values, pieces.size, numbers);
}

void WritePieces(Span<const FittedPiece> pieces, const Layout& layout, int degree, const float* curve, uint8_t* code) {
  code[0] = static_cast<uint8_t>(degree);
  BitWriter heads(code + kHeadersOffset);
  for (const FittedPiece& piece : pieces) {
    const uint64_t head = static_cast<uint64_t>(piece.fit) | static_cast<uint64_t>(piece.negative) << kFitBits;
    heads.Put(head | static_cast<uint64_t>(piece.length - 1) << kHeaderBits, kHeaderBits + layout.width);
  }
  heads.Finish();
  uint8_t* next = code + layout.numbers;
  for (const FittedPiece& piece : pieces) {
    const size_t bytes = sizeof(float) * piece.Numbers(degree);
    std::memcpy(next, piece.fit == Fit::kRaw ? curve + piece.begin : piece.coefficients, bytes);
    next += bytes;
  }
}

// What an encoder needs beside its input and output: 28 bytes a value.
struct EncoderMemory {
  DescendingOrder order;
  Buffer<float> curve, decoded;
  Buffer<int32_t> places;

  bool Take(Span<const float> values) {
    curve = AllocateBuffer<float>(values.size);
    decoded = AllocateBuffer<float>(values.size);
    places = AllocateBuffer<int32_t>(values.size);
    return curve != nullptr && decoded != nullptr && places != nullptr && order.Sort(values);
  }
};

// The pieces of a code, checked and then decoded one after another.
class PieceReader {
 public:
  PieceReader(bool double_exponential, Span<const uint8_t> code, size_t values)
      : double_exponential_(double_exponential),
        code_(code),
        values_(values),
        degree_(code[0]),
        width_(IndexWidth(static_cast<int64_t>(values))) {}

  // Whether the code has the parts that its heads tell of.
  Error Check(Layout* layout) const {
    if (degree_ < 1 || degree_ > kMaxDegree) return {"fit: unknown degree", 0};
    size_t pieces = 0, numbers = 0;
    BitReader heads(code_, 8 * kHeadersOffset);
    for (Piece piece; piece.begin + piece.length < values_;) {
      const int64_t at = heads.byte();
      const Piece before = piece;
      piece = Next(before, &heads);
      if (const char* wrong = Wrong(before, piece)) return {wrong, at};
      ++pieces;
      numbers += piece.Numbers(degree_);
    }
    *layout = Layout(values_, pieces, numbers);
    const BitReader end(code_, 8 * uint64_t{layout->places} + values_ * static_cast<uint64_t>(width_));
    if (Error error = end.Finish(); !error.ok()) return error;
    return BitReader(code_.subspan(0, layout->numbers), heads.position()).Finish();
  }

  // After Check. The curve, with its signs.
  Error Decode(const Layout& layout, float* curve) const {
    const uint8_t* next = code_.data + layout.numbers;
    BitReader heads(code_, 8 * kHeadersOffset);
    for (Piece piece; piece.begin + piece.length < values_;) {
      piece = Next(piece, &heads);
      const Span<float> points(curve + piece.begin, piece.length);
      if (!DecodePiece(piece, next, points)) return {"fit: numbers of a piece out of range", next - code_.data};
      if (piece.negative) {
        for (float& point : points) point = -point;
      }
      next += sizeof(float) * piece.Numbers(degree_);
    }
    return {};
  }

 private:
  Piece Next(const Piece& before, BitReader* heads) const {
    const uint64_t head = heads->Peek();
    heads->Skip(static_cast<uint64_t>(kHeaderBits + width_));
    Piece piece;
    piece.fit = static_cast<Fit>(head & ((1 << kFitBits) - 1));
    piece.negative = (head >> kFitBits & 1) != 0;
    piece.begin = before.begin + before.length;
    piece.length = static_cast<size_t>(head >> kHeaderBits & ((uint64_t{1} << width_) - 1)) + 1;
    return piece;
  }

  const char* Wrong(const Piece& before, const Piece& piece) const {
    const bool zeros = piece.fit == Fit::kZeros;
    const bool fitted = piece.fit == Fit::kPolynomial || piece.fit == Fit::kDoubleExponential;
    if (piece.fit == Fit::kDoubleExponential && !double_exponential_) return "fit: unknown kind of piece";
    if (zeros && piece.negative) return "fit: zeros with a sign";
    if (before.fit == Fit::kZeros || (before.negative && !piece.negative && !zeros)) return "fit: pieces out of order";
    if (piece.length > values_ - piece.begin) return "fit: pieces of more values than there are";
    if (fitted && piece.length <= static_cast<size_t>(degree_)) return "fit: fitted piece of too few values";
    return nullptr;
  }

  // False where a number is not such as an encoder writes.
  bool DecodePiece(const Piece& piece, const uint8_t* numbers, Span<float> points) const {
    if (piece.fit == Fit::kZeros) {
      std::fill(points.begin(), points.end(), 0.0f);
      return true;
    }
    const auto in_range = [](uint32_t bits) {
      return static_cast<uint32_t>(kSmallestNormalBits) <= bits && bits < static_cast<uint32_t>(kInfinityBits);
    };
    if (piece.fit == Fit::kRaw) {
      std::memcpy(points.data, numbers, sizeof(float) * points.size);
      return std::all_of(points.begin(), points.end(), [&](float point) { return in_range(BitsOf(point)); });
    }
    float coefficients[kMaxDegree + 1];
    const size_t n = piece.Numbers(degree_);
    std::memcpy(coefficients, numbers, sizeof(float) * n);
    for (size_t k = 0; k < n; ++k) {
      const uint32_t magnitude = static_cast<uint32_t>(MagnitudeBits(coefficients[k]));
      if (magnitude != 0 && !in_range(magnitude)) return false;
      const bool rate = piece.fit == Fit::kDoubleExponential && k % 2 == 1;
      if (rate && magnitude > BitsOf(kMaxRate)) return false;
    }
    EvaluatePiece(piece, coefficients, degree_, points);
    return true;
  }

  const bool double_exponential_;
  const Span<const uint8_t> code_;
  const size_t values_;
  const int degree_;
  const int width_;
};

// Puts the points of a curve where the values were. Each point has one place.
Error ReadPlaces(Span<const uint8_t> code, const Layout& layout, const float* curve, Span<float> values) {
  const Buffer<uint64_t> taken = AllocateZeros<uint64_t>((values.size + 63) / 64);
  if (taken == nullptr) return {"out of memory", 0};
  int32_t places[kBlock];
  for (size_t first = 0; first < values.size; first += kBlock) {
    const size_t n = std::min(kBlock, values.size - first);
    const uint64_t bit = 8 * uint64_t{layout.places} + first * static_cast<uint64_t>(layout.width);
    ReadFields(code, bit, layout.width, {places, n});
    for (size_t i = 0; i < n; ++i) {
      const size_t place = static_cast<size_t>(places[i]);
      const uint64_t mask = uint64_t{1} << (place & 63);
      if (place >= values.size || (taken[place >> 6] & mask) != 0) {
        return {"fit: places are no permutation", static_cast<int64_t>((bit + i * static_cast<uint64_t>(layout.width)) / 8)};
      }
      taken[place >> 6] |= mask;
      values[first + i] = curve[place];
    }
  }
  return {};
}

}  // namespace

size_t EncodeCurve(const CurveOptions& options, Span<const float> values, Span<uint8_t> code, float* decoded) {
  const size_t n = values.size;
  EncoderMemory memory;
  if (n > static_cast<size_t>(kMaxSize) || Layout(n, 1, 0).end >= code.size || !memory.Take(values)) return kNotShorter;
  const DescendingOrder& order = memory.order;
  for (size_t i = 0; i < n; ++i) {
    memory.curve[i] = order.Magnitude(i);
    memory.places[order.Index(i)] = static_cast<int32_t>(i);
  }
  CurveFitter fitter(options, {memory.curve.get(), n}, memory.decoded.get());
  fitter.AddSign(false, order.positive());
  fitter.AddSign(true, order.negative());
  fitter.AddZeros(n - order.positive() - order.negative());
  const Layout layout = LayoutOf(n, fitter.pieces(), options.degree);
  if (layout.end >= code.size) return kNotShorter;
  WritePieces(fitter.pieces(), layout, options.degree, memory.curve.get(), code.data);
  EncodeRawIndices(static_cast<int64_t>(n), {memory.places.get(), n}, code.data + layout.places);
  for (const FittedPiece& piece : fitter.pieces()) {
    for (size_t i = piece.begin; i < piece.begin + piece.length; ++i) {
      decoded[order.Index(i)] = piece.negative ? -memory.decoded[i] : memory.decoded[i];
    }
  }
  return layout.end;
}

Error DecodeCurve(bool double_exponential, Span<const uint8_t> code, Span<float> values) {
  if (code.empty()) return {"fit: empty code", 0};
  const PieceReader reader(double_exponential, code, values.size);
  Layout layout(values.size, 0, 0);
  if (Error error = reader.Check(&layout); !error.ok()) return error;
  const Buffer<float> curve = AllocateBuffer<float>(values.size);
  if (curve == nullptr) return {"out of memory", 0};
  if (Error error = reader.Decode(layout, curve.get()); !error.ok()) return error;
  return ReadPlaces(code, layout, curve.get(), values);
}

}  // namespace deepreduce
