// The frames of all ranks back into one dense tensor per gradient.
#include <cstring>

#include "absl/strings/str_cat.h"
#include "deepreduce_tf/cc/kernels/code_tensors.h"
#include "deepreduce_tf/cc/kernels/segment_loop.h"
#include "deepreduce_tf/cc/kernels/segment_tensors.h"
#include "deepreduce_tf/cc/kernels/zlib_ng.h"
#include "deepreduce_tf/cc/lib/frame.h"
#include "deepreduce_tf/cc/lib/index/index_codecs.h"
#include "deepreduce_tf/cc/lib/value/value_codecs.h"

namespace deepreduce {
namespace {

using tensorflow::OpKernelConstruction;
using tensorflow::OpKernelContext;
using tensorflow::Tensor;

// What the ops that read payloads share: the plan to check frames against, and the frames.
class FrameOp : public tensorflow::OpKernel {
 public:
  explicit FrameOp(OpKernelConstruction* context) : OpKernel(context) {
    OP_REQUIRES_OK(context, context->GetAttr("index_codec", &index_codec_));
    OP_REQUIRES_OK(context, context->GetAttr("value_codec", &value_codec_));
  }

 protected:
  // The frames of a payload, which lie end to end in the order of the ranks.
  struct Frames {
    Span<const uint8_t> bytes;
    Span<const int64_t> sizes;
    std::vector<Frame> frames;
    std::vector<FrameRow> rows;   // frame by frame
    std::vector<size_t> indices;  // offset of each row's index code
    std::vector<size_t> values;   // offset of each row's value code

    size_t segments() const { return sizes.size; }
    size_t ranks() const { return frames.size(); }
    Span<const uint8_t> IndexCode(size_t row) const { return bytes.subspan(indices[row], rows[row].index_length); }
    Span<const uint8_t> ValueCode(size_t row) const { return bytes.subspan(values[row], rows[row].value_length); }
    size_t Values(size_t row) const { return static_cast<size_t>(rows[row].count) * rows[row].width; }
  };

  // `widths` may be left out by ops whose segments are all dense.
  absl::Status ReadFrames(OpKernelContext* context, bool has_widths, Frames* f) const {
    const Tensor* payload;
    absl::Status status = context->input("payload", &payload);
    if (status.ok()) status = CheckVector("payload", *payload);
    if (status.ok()) status = ReadInt64(context, "sizes", kAnyLength, &f->sizes);
    if (status.ok()) status = CheckSizes(f->sizes);
    const std::vector<int64_t> ones(f->sizes.size, 1);
    Span<const int64_t> widths(ones), fingerprint;
    if (has_widths && status.ok()) status = ReadInt64(context, "widths", static_cast<int64_t>(f->sizes.size), &widths);
    if (status.ok()) status = ReadInt64(context, "fingerprint", kScalar, &fingerprint);
    if (!status.ok()) return status;
    f->bytes = Span<const uint8_t>(reinterpret_cast<const uint8_t*>(payload->flat<int64_t>().data()), 8 * payload->NumElements());
    FramePlan plan;
    plan.header.index_codec = static_cast<uint8_t>(index_codec_);
    plan.header.value_codec = static_cast<uint8_t>(value_codec_);
    plan.header.segments = static_cast<uint32_t>(f->sizes.size);
    plan.header.fingerprint = static_cast<uint64_t>(fingerprint[0]);
    plan.sizes = f->sizes;
    plan.widths = widths;
    for (size_t start = 0; start < f->bytes.size;) {
      Frame frame;
      f->rows.resize(f->rows.size() + f->segments());
      FrameRow* rows = f->rows.data() + f->rows.size() - f->segments();
      const FrameError error = ParseFrame(f->bytes.subspan(start, f->bytes.size - start), plan, &frame, rows);
      if (!error.ok()) return Refused(f->ranks(), error);
      size_t index = start + frame.index_codes, value = start + frame.value_codes;
      for (size_t i = 0; i < f->segments(); ++i) {
        f->indices.push_back(index);
        f->values.push_back(value);
        index += rows[i].index_length;
        value += rows[i].value_length;
      }
      f->frames.push_back(frame);
      start += frame.length;
    }
    return absl::OkStatus();
  }

  static absl::Status Refused(size_t rank, const FrameError& error) {
    std::string message = absl::StrCat("the frame of rank ", rank, " does not match this rank's plan: ", error.what);
    if (error.segment >= 0) absl::StrAppend(&message, ", segment ", error.segment);
    if (error.compared) absl::StrAppend(&message, ", expected ", error.expected, ", received ", error.received);
    return absl::DataLossError(absl::StrCat(message, " (byte ", error.position,
                                            "). All ranks must use the same model, order of variables and DeepReduce configuration"));
  }

  int index_codec_, value_codec_;
};

// Both codes of a segment to indices and values.
class SegmentDecoder {
 public:
  absl::Status Find(int index_codec, int value_codec) {
    index_ = FindIndexCodec(static_cast<uint8_t>(index_codec));
    value_ = FindValueCodec(static_cast<uint8_t>(value_codec));
    if (index_ == nullptr || value_ == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat("no built-in codecs with these ids. Received: index_codec=", index_codec, ", value_codec=", value_codec));
    }
    return value_ == &kDeflate ? FindZlibNg(&options_.deflate) : absl::OkStatus();
  }

  template <class Frames>
  absl::Status Decode(const Frames& f, size_t row, Span<int32_t> indices, Span<float> values) const {
    const size_t rank = row / f.segments(), segment = row % f.segments();
    const FrameHeader& header = f.frames[rank].header;
    const Segment known = {f.sizes[segment], header.seed, header.step, static_cast<uint32_t>(segment)};
    Error error = DecodeIndices(*index_, known, f.IndexCode(row), indices);
    if (!error.ok()) return Damaged("index", rank, segment, error);
    error = DecodeValues(*value_, options_, f.ValueCode(row), values);
    if (!error.ok()) return Damaged("value", rank, segment, error);
    return absl::OkStatus();
  }

 private:
  static absl::Status Damaged(const char* which, size_t rank, size_t segment, const Error& error) {
    return absl::DataLossError(absl::StrCat("the ", which, " code of rank ", rank, ", segment ", segment, " is damaged: ", error.name,
                                            " at byte ", error.position, " of it"));
  }

  const IndexCodec* index_ = nullptr;
  const ValueCodec* value_ = nullptr;
  ValueOptions options_;
};

// What one rank adds to one dense tensor.
struct Part {
  const int32_t* indices;
  const float* values;
  size_t count;
};

// out = scale * sum of the parts, in their order. Tile by tile, so that the output is touched while it is in cache.
void ScatterSum(const std::vector<Part>& parts, float scale, Span<float> out) {
  constexpr size_t kTile = 1 << 15;
  std::vector<size_t> position(parts.size(), 0);
  for (size_t first = 0; first < out.size; first += kTile) {
    const size_t last = std::min(out.size, first + kTile);
    std::memset(out.data + first, 0, (last - first) * sizeof(float));
    for (size_t p = 0; p < parts.size(); ++p) {
      const Part& part = parts[p];
      size_t i = position[p];
      for (; i < part.count && static_cast<size_t>(part.indices[i]) < last; ++i) out[part.indices[i]] += part.values[i] * scale;
      position[p] = i;
    }
  }
}

absl::Status ReadScale(OpKernelContext* context, float* scale) {
  const Tensor* tensor;
  absl::Status status = context->input("scale", &tensor);
  if (status.ok()) status = CheckScalar("scale", *tensor);
  if (status.ok()) *scale = tensor->scalar<float>()();
  return status;
}

// What the ops that decode by built-in codecs share.
class DecodingOp : public FrameOp {
 public:
  explicit DecodingOp(OpKernelConstruction* context) : FrameOp(context) {
    OP_REQUIRES_OK(context, decoder_.Find(index_codec_, value_codec_));
  }

 protected:
  SegmentDecoder decoder_;
};

class FrameDecodeSumOp : public DecodingOp {
 public:
  using DecodingOp::DecodingOp;

  void Compute(OpKernelContext* context) override {
    Frames f;
    OP_REQUIRES_OK(context, ReadFrames(context, false, &f));
    float scale;
    OP_REQUIRES_OK(context, ReadScale(context, &scale));
    tensorflow::OpOutputList sums;
    OP_REQUIRES_OK(context, context->output_list("sums", &sums));
    OP_REQUIRES(context, sums.size() == static_cast<int>(f.segments()),
                absl::InvalidArgumentError(absl::StrCat("`sizes` must have ", sums.size(), " elements. Received: ", f.segments())));
    std::vector<Tensor*> outputs(f.segments());
    std::vector<int64_t> weights(f.segments());
    for (size_t i = 0; i < f.segments(); ++i) {
      OP_REQUIRES_OK(context, sums.allocate(static_cast<int>(i), {f.sizes[i]}, &outputs[i]));
      weights[i] = f.sizes[i] / 4;
      for (size_t rank = 0; rank < f.ranks(); ++rank) weights[i] += f.rows[rank * f.segments() + i].count;
    }
    SegmentLoop loop(context, weights);
    std::vector<std::vector<int32_t>> indices(loop.workers());
    std::vector<std::vector<float>> values(loop.workers());
    SharedStatus status;
    loop.Run([&](int worker, int64_t i) {
      std::vector<Part> parts(f.ranks());
      size_t total = 0;
      for (size_t rank = 0; rank < f.ranks(); ++rank) total += f.rows[rank * f.segments() + i].count;
      if (indices[worker].size() < total) {
        indices[worker].resize(total);
        values[worker].resize(total);
      }
      size_t used = 0;
      for (size_t rank = 0; rank < f.ranks(); ++rank) {
        const size_t row = rank * f.segments() + i, count = f.rows[row].count;
        parts[rank] = {indices[worker].data() + used, values[worker].data() + used, count};
        const absl::Status decoded =
            decoder_.Decode(f, row, Span<int32_t>(indices[worker].data() + used, count), Span<float>(values[worker].data() + used, count));
        if (!decoded.ok()) return status.Update(decoded);
        used += count;
      }
      ScatterSum(parts, scale, Span<float>(outputs[i]->flat<float>().data(), f.sizes[i]));
    });
    OP_REQUIRES_OK(context, status.Get());
  }
};

// All ranks' indices and values, not added: for `IndexedSlices`.
class FrameDecodeOp : public DecodingOp {
 public:
  using DecodingOp::DecodingOp;

  void Compute(OpKernelContext* context) override {
    Frames f;
    OP_REQUIRES_OK(context, ReadFrames(context, true, &f));
    const int64_t rows = static_cast<int64_t>(f.rows.size());
    std::vector<int64_t> counts(rows), value_starts(rows + 1, 0), weights(rows);
    for (int64_t row = 0; row < rows; ++row) {
      counts[row] = f.rows[row].count;
      weights[row] = static_cast<int64_t>(f.Values(row));
      value_starts[row + 1] = value_starts[row] + weights[row];
    }
    Span<const int64_t> splits;
    OP_REQUIRES_OK(context, OutputSplits(context, "splits", counts, &splits));
    Tensor *indices, *values;
    OP_REQUIRES_OK(context, context->allocate_output("indices", {splits[rows]}, &indices));
    OP_REQUIRES_OK(context, context->allocate_output("values", {value_starts[rows]}, &values));
    SegmentLoop loop(context, weights);
    SharedStatus status;
    loop.Run([&](int, int64_t row) {
      status.Update(decoder_.Decode(f, row, Span<int32_t>(indices->flat<int32_t>().data() + splits[row], f.rows[row].count),
                                    Span<float>(values->flat<float>().data() + value_starts[row], f.Values(row))));
    });
    OP_REQUIRES_OK(context, status.Get());
  }
};

// The codes of one rank, for stages that decode in Python.
class FrameUnpackOp : public FrameOp {
 public:
  using FrameOp::FrameOp;

  void Compute(OpKernelContext* context) override {
    Frames f;
    OP_REQUIRES_OK(context, ReadFrames(context, true, &f));
    Span<const int64_t> rank_input;
    OP_REQUIRES_OK(context, ReadInt64(context, "rank", kScalar, &rank_input));
    const int64_t rank = rank_input[0], n = static_cast<int64_t>(f.segments());
    OP_REQUIRES(context, rank >= 0 && rank < static_cast<int64_t>(f.ranks()),
                absl::InvalidArgumentError(absl::StrCat("`rank` must be in [0, ", f.ranks(), "). Received: rank=", rank)));
    Tensor *counts, *seed, *step;
    OP_REQUIRES_OK(context, context->allocate_output("counts", {n}, &counts));
    for (int64_t i = 0; i < n; ++i) counts->vec<int64_t>()(i) = f.rows[rank * n + i].count;
    OP_REQUIRES_OK(context, context->allocate_output("seed", {}, &seed));
    OP_REQUIRES_OK(context, context->allocate_output("step", {}, &step));
    seed->scalar<int64_t>()() = f.frames[rank].header.seed;
    step->scalar<int64_t>()() = static_cast<int64_t>(f.frames[rank].header.step);
    const auto lengths = [&](uint32_t FrameRow::* length) {
      std::vector<int64_t> all(n);
      for (int64_t i = 0; i < n; ++i) all[i] = f.rows[rank * n + i].*length;
      return all;
    };
    const size_t first = rank * f.segments();
    OP_REQUIRES_OK(context, OutputCodes(context, "index_code", "index_splits", lengths(&FrameRow::index_length),
                                        [&](int64_t i) { return f.IndexCode(first + i).data; }));
    OP_REQUIRES_OK(context, OutputCodes(context, "value_code", "value_splits", lengths(&FrameRow::value_length),
                                        [&](int64_t i) { return f.ValueCode(first + i).data; }));
  }
};

// Sums decoded parts that lie rank by rank, segment by segment: the generic counterpart of FrameDecodeSum.
class ScatterSumOp : public tensorflow::OpKernel {
 public:
  using OpKernel::OpKernel;

  void Compute(OpKernelContext* context) override {
    Span<const int64_t> sizes;
    OP_REQUIRES_OK(context, ReadInt64(context, "sizes", kAnyLength, &sizes));
    OP_REQUIRES_OK(context, CheckSizes(sizes));
    float scale;
    OP_REQUIRES_OK(context, ReadScale(context, &scale));
    const Tensor *indices, *values, *splits_input;
    OP_REQUIRES_OK(context, context->input("indices", &indices));
    OP_REQUIRES_OK(context, context->input("values", &values));
    OP_REQUIRES_OK(context, context->input("splits", &splits_input));
    OP_REQUIRES_OK(context, CheckVector("indices", *indices));
    OP_REQUIRES_OK(context, CheckVector("values", *values, indices->NumElements()));
    OP_REQUIRES_OK(context, CheckVector("splits", *splits_input));
    tensorflow::OpOutputList sums;
    OP_REQUIRES_OK(context, context->output_list("sums", &sums));
    const int64_t n = sums.size(), rows = splits_input->NumElements() - 1;
    OP_REQUIRES(
        context, static_cast<int64_t>(sizes.size) == n && rows >= 0 && rows % n == 0,
        absl::InvalidArgumentError(absl::StrCat(
            "`sizes` must have ", n, " elements and `splits` a multiple of that plus one. Received: ", sizes.size, " and ", rows + 1)));
    OP_REQUIRES_OK(context, CheckSplits("splits", *splits_input, rows, indices->NumElements()));
    const Span<const int64_t> splits = View<int64_t>(*splits_input);
    for (int64_t row = 0; row < rows; ++row) {
      const std::string wrong = WrongIndex(View<int32_t>(*indices).subspan(splits[row], splits[row + 1] - splits[row]), sizes[row % n]);
      OP_REQUIRES(context, wrong.empty(), absl::DataLossError(absl::StrCat(wrong, " from rank ", row / n, ", segment ", row % n)));
    }
    for (int64_t i = 0; i < n; ++i) {
      Tensor* out;
      OP_REQUIRES_OK(context, sums.allocate(static_cast<int>(i), {sizes[i]}, &out));
      std::vector<Part> parts;
      for (int64_t row = i; row < rows; row += n) {
        parts.push_back({indices->flat<int32_t>().data() + splits[row], values->flat<float>().data() + splits[row],
                         static_cast<size_t>(splits[row + 1] - splits[row])});
      }
      ScatterSum(parts, scale, Span<float>(out->flat<float>().data(), sizes[i]));
    }
  }
};

REGISTER_KERNEL_BUILDER(Name("DeepReduce>FrameDecodeSum").Device(tensorflow::DEVICE_CPU), FrameDecodeSumOp);
REGISTER_KERNEL_BUILDER(Name("DeepReduce>FrameDecode").Device(tensorflow::DEVICE_CPU), FrameDecodeOp);
REGISTER_KERNEL_BUILDER(Name("DeepReduce>FrameUnpack").Device(tensorflow::DEVICE_CPU), FrameUnpackOp);
REGISTER_KERNEL_BUILDER(Name("DeepReduce>ScatterSum").Device(tensorflow::DEVICE_CPU), ScatterSumOp);

}  // namespace
}  // namespace deepreduce
