// The frame that carries one bucket: docs/format.md.
#ifndef DEEPREDUCE_LIB_FRAME_H_
#define DEEPREDUCE_LIB_FRAME_H_

#include <cstddef>
#include <cstdint>

#include "deepreduce_tf/cc/lib/bits/limits.h"
#include "deepreduce_tf/cc/lib/bits/span.h"

namespace deepreduce {

constexpr size_t kFrameHeaderLength = 32;

struct FrameHeader {
  uint8_t index_codec = 0;
  uint8_t value_codec = 0;
  uint32_t segments = 0;
  uint32_t seed = 0;
  uint64_t step = 0;
  uint64_t fingerprint = 0;
};

struct FrameRow {
  uint32_t size = 0;
  uint32_t count = 0;
  uint32_t width = 1;
  uint32_t index_length = 0;
  uint32_t value_length = 0;
};

// Bytes before the index codes.
size_t FrameCodesOffset(Span<const FrameRow> rows);

// Bytes of the whole frame, padding included.
size_t FrameLength(Span<const FrameRow> rows);

// Writes header and table, FrameCodesOffset bytes.
void WriteFrameHeader(const FrameHeader& header, Span<const FrameRow> rows, uint8_t* out);

// What a receiver knows of the frames it accepts: the header's codecs, number of segments and fingerprint, and for each segment its size
// and width.
struct FramePlan {
  FrameHeader header;
  Span<const int64_t> sizes;
  Span<const int64_t> widths;
};

// Why a frame was refused. `what` is a literal; null when it was accepted.
struct [[nodiscard]] FrameError {
  const char* what = nullptr;
  int64_t position = 0;   // byte in the frame
  int64_t segment = -1;   // -1: the frame as a whole
  bool compared = false;  // whether the two values below mean something
  uint64_t expected = 0;
  uint64_t received = 0;

  bool ok() const { return what == nullptr; }
};

// Where the parts of an accepted frame lie.
struct Frame {
  FrameHeader header;
  size_t index_codes = 0;  // offset of the first index code
  size_t value_codes = 0;  // offset of the first value code
  size_t length = 0;       // of the frame, padding included
};

// Reads the frame at the start of `bytes`; `rows` has room for plan.header.segments rows. Total: reads only `bytes`, allocates nothing.
FrameError ParseFrame(Span<const uint8_t> bytes, const FramePlan& plan, Frame* frame, FrameRow* rows);

}  // namespace deepreduce

#endif  // DEEPREDUCE_LIB_FRAME_H_
