#include "deepreduce_tf/cc/lib/frame.h"

#include <cstring>
#include <initializer_list>

#include "deepreduce_tf/cc/lib/bits/leb128.h"

namespace deepreduce {
namespace {

constexpr uint8_t kMagic[4] = {'D', 'R', 'T', 'F'};
constexpr uint8_t kVersion = 1;

template <class T>
void Put(uint8_t* out, T value) {
  for (size_t i = 0; i < sizeof(T); ++i) out[i] = static_cast<uint8_t>(value >> (8 * i));
}

template <class T>
T Get(const uint8_t* in) {
  T value = 0;
  for (size_t i = 0; i < sizeof(T); ++i) value |= static_cast<T>(in[i]) << (8 * i);
  return value;
}

size_t Padded(size_t length) { return (length + 7) / 8 * 8; }

FrameError Refuse(const char* what, int64_t position, int64_t segment = -1) {
  FrameError error;
  error.what = what;
  error.position = position;
  error.segment = segment;
  return error;
}

FrameError Differ(const char* what, int64_t position, int64_t segment, uint64_t expected, uint64_t received) {
  FrameError error = Refuse(what, position, segment);
  error.compared = true;
  error.expected = expected;
  error.received = received;
  return error;
}

FrameError ParseHeader(Span<const uint8_t> bytes, const FrameHeader& expected, FrameHeader* header) {
  if (bytes.size < kFrameHeaderLength) return Differ("the header is cut off; its length", 0, -1, kFrameHeaderLength, bytes.size);
  const uint8_t* b = bytes.data;
  if (std::memcmp(b, kMagic, 4) != 0)
    return Differ("no frame begins here; its first four bytes", 0, -1, Get<uint32_t>(kMagic), Get<uint32_t>(b));
  if (b[4] != kVersion) return Differ("another version of the format", 4, -1, kVersion, b[4]);
  header->index_codec = b[5];
  header->value_codec = b[6];
  header->segments = Get<uint32_t>(b + 8);
  header->seed = Get<uint32_t>(b + 12);
  header->step = Get<uint64_t>(b + 16);
  header->fingerprint = Get<uint64_t>(b + 24);
  if (b[7] != 0) return Differ("the reserved byte", 7, -1, 0, b[7]);
  if (header->index_codec != expected.index_codec) return Differ("another index codec", 5, -1, expected.index_codec, header->index_codec);
  if (header->value_codec != expected.value_codec) return Differ("another value codec", 6, -1, expected.value_codec, header->value_codec);
  if (header->segments != expected.segments) return Differ("another number of gradients", 8, -1, expected.segments, header->segments);
  return {};
}

FrameError ParseRow(Span<const uint8_t> bytes, size_t* position, int64_t segment, int64_t size, int64_t width, FrameRow* row) {
  const int64_t start = static_cast<int64_t>(*position);
  for (uint32_t* field : {&row->size, &row->count, &row->width, &row->index_length, &row->value_length}) {
    if (!GetVarint(bytes, position, field)) return Refuse("a malformed number in the table", start, segment);
  }
  if (row->size != size) return Differ("size mismatch", start, segment, size, row->size);
  if (row->width != width) return Differ("another row length", start, segment, width, row->width);
  if (row->count > row->size) return Differ("more indices kept than there are elements", start, segment, row->size, row->count);
  if (static_cast<uint64_t>(row->count) * row->width > static_cast<uint64_t>(kMaxSize))
    return Differ("more values than a frame may hold", start, segment, kMaxSize, static_cast<uint64_t>(row->count) * row->width);
  return {};
}

}  // namespace

size_t FrameCodesOffset(Span<const FrameRow> rows) {
  size_t length = kFrameHeaderLength;
  for (const FrameRow& row : rows) {
    for (uint32_t field : {row.size, row.count, row.width, row.index_length, row.value_length}) length += VarintLength(field);
  }
  return length;
}

size_t FrameLength(Span<const FrameRow> rows) {
  size_t length = FrameCodesOffset(rows);
  for (const FrameRow& row : rows) length += static_cast<size_t>(row.index_length) + row.value_length;
  return Padded(length);
}

void WriteFrameHeader(const FrameHeader& header, Span<const FrameRow> rows, uint8_t* out) {
  std::memcpy(out, kMagic, 4);
  out[4] = kVersion;
  out[5] = header.index_codec;
  out[6] = header.value_codec;
  out[7] = 0;
  Put<uint32_t>(out + 8, header.segments);
  Put<uint32_t>(out + 12, header.seed);
  Put<uint64_t>(out + 16, header.step);
  Put<uint64_t>(out + 24, header.fingerprint);
  out += kFrameHeaderLength;
  for (const FrameRow& row : rows) {
    for (uint32_t field : {row.size, row.count, row.width, row.index_length, row.value_length}) out = PutVarint(out, field);
  }
}

FrameError ParseFrame(Span<const uint8_t> bytes, const FramePlan& plan, Frame* frame, FrameRow* rows) {
  FrameError error = ParseHeader(bytes, plan.header, &frame->header);
  if (!error.ok()) return error;
  size_t position = kFrameHeaderLength;
  uint64_t index_bytes = 0, value_bytes = 0;
  for (uint32_t i = 0; i < plan.header.segments; ++i) {
    error = ParseRow(bytes, &position, i, plan.sizes[i], plan.widths[i], &rows[i]);
    if (!error.ok()) return error;
    index_bytes += rows[i].index_length;
    value_bytes += rows[i].value_length;
  }
  // After the rows: a difference that shows in a size is told with its segment.
  const uint64_t expected = plan.header.fingerprint, received = frame->header.fingerprint;
  if (static_cast<uint32_t>(expected) != static_cast<uint32_t>(received))
    return Differ("another configuration; its fingerprint", 24, -1, static_cast<uint32_t>(expected), static_cast<uint32_t>(received));
  if (expected != received)
    return Differ("another order of gradients, or other shapes, names or dtypes; their fingerprint", 28, -1, expected >> 32,
                  received >> 32);
  frame->index_codes = position;
  frame->value_codes = position + index_bytes;
  const uint64_t end = frame->value_codes + value_bytes;
  if (end > bytes.size || Padded(end) > bytes.size)
    return Differ("the codes are cut off; bytes of the frame", position, -1, Padded(end), bytes.size);
  frame->length = Padded(end);
  for (size_t i = end; i < frame->length; ++i) {
    if (bytes[i] != 0) return Differ("the padding", i, -1, 0, bytes[i]);
  }
  return {};
}

}  // namespace deepreduce
