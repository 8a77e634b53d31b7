// Frames: what comes back, how they lie end to end, and the error of every rule of docs/format.md, "Layout".
#include "deepreduce_tf/cc/lib/frame.h"

#include "tests/cc/check.h"
#include "tests/cc/samples.h"

namespace deepreduce::testing {
namespace {

using Rows = std::vector<FrameRow>;

bool Same(const FrameRow& a, const FrameRow& b) {
  return a.size == b.size && a.count == b.count && a.width == b.width && a.index_length == b.index_length &&
         a.value_length == b.value_length;
}

// A frame whose codes are counted bytes, and what a receiver that agrees knows of it.
struct Sample {
  FrameHeader header;
  Rows rows;
  Bytes bytes;
  std::vector<int64_t> sizes, widths;

  explicit Sample(Rows chosen) : rows(std::move(chosen)) {
    header.index_codec = 3;
    header.value_codec = 4;
    header.segments = static_cast<uint32_t>(rows.size());
    header.seed = 0xfedcba98;
    header.step = 0x0123456789abcdefull;
    header.fingerprint = 0xfedcba9876543210ull;
    bytes.assign(FrameLength(rows), 0);
    WriteFrameHeader(header, rows, bytes.data());
    uint8_t next = 1;
    size_t at = FrameCodesOffset(rows);
    for (const FrameRow& row : rows) {
      for (size_t i = 0; i < size_t{row.index_length} + row.value_length; ++i) bytes[at++] = next++;
      sizes.push_back(row.size);
      widths.push_back(row.width);
    }
  }

  FramePlan Plan() const {
    FramePlan plan;
    plan.header = header;
    plan.header.seed = 0;  // a receiver does not know these two
    plan.header.step = 0;
    plan.sizes = sizes;
    plan.widths = widths;
    return plan;
  }

  FrameError Parse(Frame* frame, Rows* parsed) const {
    parsed->assign(rows.size(), FrameRow());
    return ParseFrame(bytes, Plan(), frame, parsed->data());
  }

  FrameError Parse() const {
    Frame frame;
    Rows parsed;
    return Parse(&frame, &parsed);
  }
};

Sample TwoSegments() { return Sample({{50000, 4, 1, 3, 7}, {6, 2, 2, 1, 9}}); }

bool Refused(const FrameError& error, const char* what, int64_t position, int64_t segment) {
  const bool same = !error.ok() && std::strcmp(error.what, what) == 0 && error.position == position && error.segment == segment;
  if (!same) {
    std::printf("  received: %s, byte %ld, segment %ld\n", error.ok() ? "no error" : error.what, static_cast<long>(error.position),
                static_cast<long>(error.segment));
  }
  return same;
}

bool Differs(const FrameError& error, const char* what, int64_t position, int64_t segment, uint64_t expected, uint64_t received) {
  const bool same = error.compared && error.expected == expected && error.received == received;
  if (!same) {
    std::printf("  expected %llu, received %llu\n", static_cast<unsigned long long>(error.expected),
                static_cast<unsigned long long>(error.received));
  }
  return Refused(error, what, position, segment) && same;
}

// The table of a one-segment frame, written by hand, against a plan of this size and width.
FrameError ParseTable(const Bytes& table, int64_t size = 1, int64_t width = 1) {
  Sample sample({{1, 0, 1, 0, 0}});
  sample.bytes.resize(kFrameHeaderLength);
  sample.bytes.insert(sample.bytes.end(), table.begin(), table.end());
  sample.bytes.resize((sample.bytes.size() + 7) / 8 * 8);
  sample.sizes = {size};
  sample.widths = {width};
  return sample.Parse();
}

TEST("A frame comes back, and tells where its parts lie") {
  const uint32_t largest = 0x7fffffff;
  for (const Rows& rows : {Rows{{1, 0, 1, 0, 0}}, Rows{{0, 0, 1, 0, 0}, {127, 127, 1, 0, 508}, {128, 1, 1, 1, 4}},
                           Rows{{largest, 2, largest / 2, 8, 5}, {largest, 0, 0xffffffff, 0, 0}, {16384, 3, 300, 5, 600}}}) {
    const Sample sample(rows);
    Frame frame;
    Rows parsed;
    CHECK(sample.Parse(&frame, &parsed).ok());
    CHECK(frame.header.index_codec == 3 && frame.header.value_codec == 4 && frame.header.segments == rows.size());
    CHECK(frame.header.seed == 0xfedcba98 && frame.header.step == 0x0123456789abcdefull);
    CHECK(frame.header.fingerprint == 0xfedcba9876543210ull);
    CHECK(frame.length == sample.bytes.size() && frame.length % 8 == 0);
    CHECK(frame.index_codes == FrameCodesOffset(rows));
    size_t values = frame.index_codes;
    for (size_t i = 0; i < rows.size(); ++i) {
      CHECK(Same(parsed[i], rows[i]));
      values += rows[i].index_length;
    }
    CHECK(frame.value_codes == values);
  }
}

size_t CodesOffset(const Rows& rows) { return FrameCodesOffset(rows); }
size_t Length(const Rows& rows) { return FrameLength(rows); }

TEST("A row takes 5 to 25 bytes, a frame a multiple of 8") {
  CHECK((CodesOffset({{1, 1, 1, 0, 4}}) == 37));
  CHECK((CodesOffset({{127, 127, 127, 127, 127}}) == 37));
  CHECK((CodesOffset({{128, 128, 128, 128, 128}}) == 42));
  CHECK((CodesOffset({{0x7fffffff, 0x7fffffff, 0xffffffff, 0xffffffff, 0xffffffff}}) == 57));
  CHECK((Length({{1, 1, 1, 0, 4}}) == 48));
  CHECK((Length({{1, 0, 1, 0, 0}}) == 40));
  CHECK((Length({{0x7fffffff, 1, 1, 0xffffffff, 0xffffffff}}) == (32 + 5 + 1 + 1 + 5 + 5 + 2 * size_t{0xffffffff} + 7) / 8 * 8));
}

TEST("Frames of several ranks lie end to end") {
  Bytes payload;
  std::vector<Sample> samples;
  for (uint32_t rank = 0; rank < 5; ++rank) {
    samples.push_back(Sample({{50000, rank, 1, 3 * rank, 4 * rank}, {6, 2, 2, 1, 9}}));
    payload.insert(payload.end(), samples.back().bytes.begin(), samples.back().bytes.end());
  }
  size_t start = 0;
  for (const Sample& sample : samples) {
    Frame frame;
    Rows rows(2);
    CHECK(ParseFrame(Span<const uint8_t>(payload.data() + start, payload.size() - start), sample.Plan(), &frame, rows.data()).ok());
    CHECK(Same(rows[0], sample.rows[0]) && Same(rows[1], sample.rows[1]));
    CHECK(frame.length == sample.bytes.size());
    start += frame.length;
  }
  CHECK(start == payload.size());
}

TEST("Refuses a frame that ends at any byte, and never reads beyond it") {
  const Sample whole = TwoSegments();
  for (size_t length = 0; length < whole.bytes.size(); ++length) {
    Sample cut = whole;
    cut.bytes = Bytes(whole.bytes.begin(), whole.bytes.begin() + static_cast<std::ptrdiff_t>(length));
    const FrameError error = cut.Parse();
    CHECK(!error.ok());
    if (length < 32) CHECK(Differs(error, "the header is cut off; its length", 0, -1, 32, length));
    if (length >= 32 && length < 39) CHECK(Refused(error, "a malformed number in the table", 32, 0));
    if (length >= 39 && length < 44) CHECK(Refused(error, "a malformed number in the table", 39, 1));
    if (length >= 44) CHECK(Differs(error, "the codes are cut off; bytes of the frame", 44, -1, 64, length));
  }
}

TEST("Refuses another header, and tells both values") {
  const auto with = [](size_t byte, uint8_t value) {
    Sample sample = TwoSegments();
    sample.bytes[byte] = value;
    return sample.Parse();
  };
  const uint64_t magic = 0x46545244;  // "DRTF"
  CHECK(Differs(with(0, 'd'), "no frame begins here; its first four bytes", 0, -1, magic, magic | 0x20));
  CHECK(Differs(with(3, 0), "no frame begins here; its first four bytes", 0, -1, magic, 0x545244));
  CHECK(Differs(with(4, 2), "another version of the format", 4, -1, 1, 2));
  CHECK(Differs(with(5, 2), "another index codec", 5, -1, 3, 2));
  CHECK(Differs(with(6, 255), "another value codec", 6, -1, 4, 255));
  CHECK(Differs(with(7, 1), "the reserved byte", 7, -1, 0, 1));
  CHECK(Differs(with(8, 3), "another number of gradients", 8, -1, 2, 3));
  CHECK(Differs(with(11, 0x80), "another number of gradients", 8, -1, 2, 0x80000002));
  CHECK(Differs(with(24, 0x11), "another configuration; its fingerprint", 24, -1, 0x76543210, 0x76543211));
  CHECK(Differs(with(31, 0), "another order of gradients, or other shapes, names or dtypes; their fingerprint", 28, -1, 0xfedcba98,
                0x00dcba98));
  CHECK(with(12, 0).ok() && with(16, 0).ok());  // seed and step are the sender's own
}

TEST("A difference that shows in a size is told with its segment, although the fingerprint differs too") {
  Sample sample = TwoSegments();
  sample.bytes[24] ^= 1;
  sample.sizes[1] = 7;
  CHECK(Differs(sample.Parse(), "size mismatch", 39, 1, 7, 6));
}

TEST("Refuses rows that this rank's plan does not have") {
  Sample sample = TwoSegments();
  sample.sizes = {49999, 6};
  CHECK(Differs(sample.Parse(), "size mismatch", 32, 0, 49999, 50000));
  sample.sizes = {50000, 6};
  sample.widths = {1, 3};
  CHECK(Differs(sample.Parse(), "another row length", 39, 1, 3, 2));
}

TEST("Refuses rows outside the limits") {
  CHECK(Differs(ParseTable({5, 6, 1, 0, 0}, 5), "more indices kept than there are elements", 32, 0, 5, 6));
  // 32768 rows of 65536 values are 2^31.
  const Bytes rows = {0xff, 0xff, 0xff, 0xff, 0x07, 0x80, 0x80, 0x02, 0x80, 0x80, 0x04, 0, 0};
  CHECK(Differs(ParseTable(rows, 0x7fffffff, 65536), "more values than a frame may hold", 32, 0, 0x7fffffff, 0x80000000));
}

TEST("Refuses numbers of the table that are cut off, too long, too large, or not in their shortest form") {
  CHECK(ParseTable({1, 0, 1, 0, 0}).ok());
  const char* kMalformed = "a malformed number in the table";
  CHECK(Refused(ParseTable({0x81, 0x00, 0, 1, 0, 0}), kMalformed, 32, 0));                       // 1 in two bytes
  CHECK(Refused(ParseTable({1, 0x80, 0x00, 1, 0, 0}), kMalformed, 32, 0));                       // 0 in two bytes
  CHECK(Refused(ParseTable({1, 0, 0x81, 0x80, 0x00, 0, 0}), kMalformed, 32, 0));                 // 1 in three bytes
  CHECK(Refused(ParseTable({0x80, 0x80, 0x80, 0x80, 0x10, 0, 1, 0, 0}), kMalformed, 32, 0));     // 2^32
  CHECK(Refused(ParseTable({0x81, 0x80, 0x80, 0x80, 0x80, 0x00, 0, 1, 0}), kMalformed, 32, 0));  // six bytes
  CHECK(Refused(ParseTable({1, 0, 1, 0, 0xff, 0xff, 0xff, 0xff}), kMalformed, 32, 0));           // cut off
  const Bytes largest = {1, 0, 1, 0xff, 0xff, 0xff, 0xff, 0x0f, 0xff, 0xff, 0xff, 0xff, 0x0f};   // 2^32 - 1 twice
  CHECK(Differs(ParseTable(largest), "the codes are cut off; bytes of the frame", 45, -1, 45 + 2 * 0xffffffffull + 5, 48));
}

TEST("Refuses padding that is not zero") {
  const Sample whole = TwoSegments();  // 44 bytes of header and table, 20 of codes: no padding
  CHECK(whole.bytes.size() == 64);
  Sample padded({{9, 2, 1, 1, 2}});
  CHECK(padded.bytes.size() == 40 && FrameCodesOffset(padded.rows) + 3 == 40);
  padded = Sample({{9, 2, 1, 1, 3}});
  CHECK(padded.Parse().ok());
  for (size_t byte = 41; byte < 48; ++byte) {
    Sample changed = padded;
    changed.bytes[byte] = 0x80;
    CHECK(Differs(changed.Parse(), "the padding", static_cast<int64_t>(byte), -1, 0, 0x80));
  }
}

TEST("Whatever bytes change, a frame is refused, or it is the one that its own header and rows write") {
  const Sample whole = TwoSegments();
  for (size_t byte = 0; byte < whole.bytes.size(); ++byte) {
    for (int value = 0; value < 256; ++value) {
      Sample changed = whole;
      changed.bytes[byte] = static_cast<uint8_t>(value);
      Frame frame;
      Rows rows;
      if (!changed.Parse(&frame, &rows).ok()) continue;
      Bytes header(FrameCodesOffset(rows));
      WriteFrameHeader(frame.header, rows, header.data());
      CHECK(std::memcmp(header.data(), changed.bytes.data(), header.size()) == 0);
      CHECK(frame.length == FrameLength(rows) && frame.length <= changed.bytes.size());
    }
  }
}

}  // namespace
}  // namespace deepreduce::testing
