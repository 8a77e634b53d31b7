// Target "frame": payloads of several ranks, from the header to the values. An input is a receiver's plan, then the payload.
#include "deepreduce_tf/cc/lib/bits/all_finite.h"
#include "deepreduce_tf/cc/lib/frame.h"
#include "tests/cc/fuzz/fuzz.h"
#include "tests/cc/plain_zlib.h"

namespace deepreduce::testing {
namespace {

constexpr int64_t kMaxSegment = 1 << 16;  // memory goes with it

// A plan that owns its sizes and widths.
struct OwnPlan {
  FrameHeader header;
  std::vector<int64_t> sizes, widths;

  explicit OwnPlan(Span<const uint8_t>* input) {
    header.index_codec = Take<uint8_t>(input);
    header.value_codec = Take<uint8_t>(input);
    header.fingerprint = Take<uint64_t>(input);
    header.segments = Take<uint8_t>(input) % 8u;
    for (uint32_t i = 0; i < header.segments; ++i) {
      sizes.push_back(Take<uint32_t>(input) % kMaxSegment);
      widths.push_back(1 + Take<uint8_t>(input) % 4);
    }
  }

  FramePlan View() const {
    FramePlan plan;
    plan.header = header;
    plan.sizes = sizes;
    plan.widths = widths;
    return plan;
  }
};

// The codes of an accepted frame, if there are such codecs.
void DecodeCodes(const Frame& frame, const std::vector<FrameRow>& rows, const Bytes& bytes) {
  const IndexCodec* index = FindIndexCodec(frame.header.index_codec);
  const ValueCodec* value = FindValueCodec(frame.header.value_codec);
  if (index == nullptr || value == nullptr) return;
  ValueOptions options;
  options.deflate = Zlib();
  size_t index_at = frame.index_codes, value_at = frame.value_codes;
  for (size_t i = 0; i < rows.size(); ++i) {
    const FrameRow& row = rows[i];
    const Segment segment = {row.size, frame.header.seed, frame.header.step, static_cast<uint32_t>(i)};
    Support places(row.count);
    Values values(size_t{row.count} * row.width);
    if (DecodeIndices(*index, segment, Span<const uint8_t>(bytes.data() + index_at, row.index_length), places).ok()) {
      Require(IsSupport(places, row.size), "places of an accepted code ascend strictly below the size");
    }
    const bool raw = row.value_length == 4 * values.size();
    if (DecodeValues(*value, options, Span<const uint8_t>(bytes.data() + value_at, row.value_length), values).ok()) {
      Require(raw || AllFinite(values), "values of an accepted code are finite");
    }
    index_at += row.index_length;
    value_at += row.value_length;
  }
  Require(index_at == frame.value_codes && value_at <= frame.length, "codes fill their part of the frame");
}

void Run(Span<const uint8_t> input) {
  const OwnPlan own(&input);
  const FramePlan plan = own.View();
  while (!input.empty()) {
    const Bytes bytes = Copy(input);
    Frame frame;
    std::vector<FrameRow> rows(own.header.segments);
    const FrameError error = ParseFrame(bytes, plan, &frame, rows.data());
    if (!error.ok()) {
      Require(0 <= error.position && error.position <= static_cast<int64_t>(bytes.size()), "an error lies within the bytes");
      Require(-1 <= error.segment && error.segment < static_cast<int64_t>(rows.size()), "an error names a segment of the plan");
      Require(!error.compared || error.expected != error.received, "values that differ are two");
      return;
    }
    Require(frame.length <= bytes.size() && frame.length % 8 == 0 && frame.length >= kFrameHeaderLength, "a frame lies in its bytes");
    Require(frame.length == FrameLength(rows) && frame.index_codes == FrameCodesOffset(rows), "a frame is as long as its rows say");
    Bytes again(FrameCodesOffset(rows));
    WriteFrameHeader(frame.header, rows, again.data());
    Require(std::memcmp(again.data(), bytes.data(), again.size()) == 0, "a header and table have one form");
    for (size_t i = 0; i < rows.size(); ++i) {
      Require(rows[i].size == own.sizes[i] && rows[i].width == own.widths[i] && rows[i].count <= rows[i].size, "rows match the plan");
    }
    DecodeCodes(frame, rows, bytes);
    input = input.subspan(frame.length, input.size - frame.length);
  }
}

// The frame of one rank: supports of several densities, values of every kind.
Bytes SampleFrame(const OwnPlan& plan, uint64_t rank) {
  ValueOptions options;
  options.deflate = Zlib();
  options.bits = 2 + static_cast<int>(rank) % 7;
  std::vector<FrameRow> rows;
  Bytes indices, values;
  for (size_t i = 0; i < plan.sizes.size(); ++i) {
    const int64_t size = plan.sizes[i];
    const Segment segment = {size, plan.header.seed, rank, static_cast<uint32_t>(i)};
    Support places(static_cast<size_t>(size * static_cast<int64_t>((rank + i) % 5) / 9));
    RandomSupport(StreamKey(segment.seed, segment.step, i), size, places);
    const Bytes index = Encode(*FindIndexCodec(plan.header.index_codec), segment, places);
    Values decoded;
    const size_t n = places.size() * static_cast<size_t>(plan.widths[i]);
    const Bytes value = Encode(*FindValueCodec(plan.header.value_codec), options, NormalValues(n, rank), &decoded);
    rows.push_back({static_cast<uint32_t>(size), static_cast<uint32_t>(places.size()), static_cast<uint32_t>(plan.widths[i]),
                    static_cast<uint32_t>(index.size()), static_cast<uint32_t>(value.size())});
    indices.insert(indices.end(), index.begin(), index.end());
    values.insert(values.end(), value.begin(), value.end());
  }
  FrameHeader header = plan.header;
  header.step = rank;
  Bytes frame(FrameLength(rows), 0);
  WriteFrameHeader(header, rows, frame.data());
  std::copy(indices.begin(), indices.end(), frame.begin() + static_cast<std::ptrdiff_t>(FrameCodesOffset(rows)));
  std::copy(values.begin(), values.end(), frame.begin() + static_cast<std::ptrdiff_t>(FrameCodesOffset(rows) + indices.size()));
  return frame;
}

std::vector<Bytes> Seeds() {
  std::vector<Bytes> seeds;
  for (const IndexCodecEntry& index : IndexCodecs()) {
    if (index.codec->encode == nullptr) continue;
    for (const ValueCodecEntry& value : ValueCodecs()) {
      for (uint8_t segments : {0, 1, 3}) {
        Bytes seed = {index.id, value.id};
        Append(uint64_t{0x0123456789abcdef}, &seed);
        seed.push_back(segments);
        for (uint8_t i = 0; i < segments; ++i) {
          Append(static_cast<uint32_t>(i == 1 ? 0 : 40 + 300 * i), &seed);
          seed.push_back(static_cast<uint8_t>(i));
        }
        Span<const uint8_t> head(seed);
        const OwnPlan plan(&head);
        for (uint64_t rank = 0; rank < 3; ++rank) {
          const Bytes frame = SampleFrame(plan, rank);
          seed.insert(seed.end(), frame.begin(), frame.end());
        }
        seeds.push_back(seed);
      }
    }
  }
  return seeds;
}

const FuzzRegistration kRegistration({"Frame", Run, Seeds});

}  // namespace
}  // namespace deepreduce::testing
