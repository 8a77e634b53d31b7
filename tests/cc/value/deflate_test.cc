// Deflate: lossless behind any codec, and what it refuses.
#include <limits>

#include "tests/cc/check.h"
#include "tests/cc/plain_zlib.h"
#include "tests/cc/refuses.h"
#include "tests/cc/samples.h"

namespace deepreduce::testing {
namespace {

constexpr uint8_t kInner[] = {kFloat32Id, kFloat16Id, kBFloat16Id, kQSGDId, kLogQuantizerId, kTernGradId, kNaturalId, kThreeLCId};

ValueOptions Options(uint8_t inner, bool shuffle = true) {
  ValueOptions options;
  options.bits = 4;
  options.inner = inner;
  options.shuffle = shuffle;
  options.noise_key = 5;
  options.deflate = Zlib();
  return options;
}

// Values that repeat, so that every codec's code can be deflated.
Values Repeated(size_t n) {
  Values values = NormalValues(n, 8);
  for (size_t i = 0; i < n; ++i) values[i] = values[i % 50];
  return values;
}

Bytes Deflated(uint8_t inner, uint8_t stride, const Bytes& content) {
  Bytes code(content.size() + 100);
  const Span<uint8_t> room(code.data() + 2, code.size() - 2);
  code.resize(2 + Zlib()->deflate(content, 6, room));
  code[0] = inner;
  code[1] = stride;
  return code;
}

TEST("Deflate decodes to what the inner codec decodes to, in fewer bytes") {
  if (Zlib() == nullptr) return;
  const Values values = Repeated(2000);
  for (uint8_t inner : kInner) {
    for (bool shuffle : {false, true}) {
      Values alone, seen, decoded(values.size());
      const Bytes code = Encode(kDeflate, Options(inner, shuffle), values, &seen);
      const Bytes inner_code = Encode(*FindValueCodec(inner), Options(inner), values, &alone);
      CHECK(code.size() < inner_code.size() && code[0] == inner);
      CHECK(code[1] == (!shuffle ? 1 : inner == kFloat32Id ? 4 : inner == kFloat16Id || inner == kBFloat16Id ? 2 : 1));
      CHECK(Decode(kDeflate, Options(kFloat32Id), code, &decoded).ok());
      CHECK(decoded == alone && seen == alone);
    }
  }
}

TEST("Deflate stores an inner code that it cannot shrink, and sends raw values where that is not shorter") {
  if (Zlib() == nullptr) return;
  const Values values = NormalValues(20, 3);
  for (uint8_t inner : kInner) {
    Values alone, seen;
    const Bytes inner_code = Encode(*FindValueCodec(inner), Options(inner), values, &alone);
    const Bytes code = Encode(kDeflate, Options(inner), values, &seen);
    if (inner == kFloat32Id) {
      CHECK(code.size() == 80 && seen == values);
      continue;
    }
    CHECK(code[0] == inner && code[1] == 0 && Bytes(code.begin() + 2, code.end()) == inner_code && seen == alone);
  }
  for (size_t n : {1, 2}) {  // head and inner code of 3 and 4 bytes, or of 5 and 8
    Values seen;
    CHECK(Encode(kDeflate, Options(kThreeLCId), NormalValues(n, 3), &seen).size() == (n == 1 ? 4 : 7));
    CHECK(Encode(kDeflate, Options(kFloat16Id), NormalValues(n, 3), &seen).size() == (n == 1 ? 4 : 6));
  }
}

TEST("Deflate without a compressor, or behind no codec, writes raw values") {
  for (uint8_t inner : {uint8_t{0}, kFloat32Id, kDeflateId, uint8_t{99}, kApplicationId}) {
    ValueOptions options = Options(inner);
    if (inner == kFloat32Id) options.deflate = nullptr;
    Values seen;
    CHECK(Encode(kDeflate, options, Repeated(100), &seen).size() == 400);
  }
  Values values(100);
  CHECK(!Decode(kDeflate, {}, Bytes(10, 1), &values).ok());
}

TEST("Deflate refuses heads, streams and contents that it does not write") {
  if (Zlib() == nullptr) return;
  const Values values = Repeated(1000);
  Values decoded;
  const Bytes good = Encode(kDeflate, Options(kFloat32Id), values, &decoded);
  const auto with = [&](size_t at, uint8_t byte) {
    Bytes code = good;
    code[at] = byte;
    return code;
  };
  for (uint8_t inner : {uint8_t{0}, kDeflateId, uint8_t{99}, kApplicationId})
    CHECK(Refuses(kDeflate, Options(kFloat32Id), 1000, with(0, inner), "Deflate: unknown inner codec", 0));
  for (uint8_t stride : {3, 5, 255}) CHECK(Refuses(kDeflate, Options(kFloat32Id), 1000, with(1, stride), "Deflate: unknown stride", 1));
  CHECK(Refuses(kDeflate, Options(kFloat32Id), 1000, with(1, 2), "Deflate: stride of other numbers", 1));
  CHECK(Refuses(kDeflate, Options(kFloat32Id), 1000, with(1, 0), "Float32 has no coded form", 2 + static_cast<int64_t>(good.size()) - 2));
  CHECK(Refuses(kDeflate, Options(kFloat32Id), 999, good, "Deflate: not a zlib stream of the right length", 2));
  CHECK(Refuses(kDeflate, Options(kFloat32Id), 1001, good, "Deflate: stride of other numbers", 1));
  Bytes longer = good;
  longer.push_back(0);
  CHECK(Refuses(kDeflate, Options(kFloat32Id), 1000, longer, "Deflate: not a zlib stream of the right length", 2));
  for (size_t length : {0, 1, 2})
    CHECK(Refuses(kDeflate, Options(kFloat32Id), 1000, Bytes(length, 1), "Deflate: code ends early", static_cast<int64_t>(length)));

  CHECK(Refuses(kDeflate, Options(kFloat32Id), 100, Deflated(kFloat32Id, 1, Bytes(396, 0)), "Float32 has no coded form", 2));
  CHECK(Refuses(kDeflate, Options(kFloat32Id), 100, Deflated(kQSGDId, 1, Bytes()), "QSGD: empty code", 2));
  CHECK(Refuses(kDeflate, Options(kFloat32Id), 100, Deflated(kFloat16Id, 1, Bytes(199, 0)), "Float16: wrong length", 2));
  CHECK(Refuses(kDeflate, Options(kFloat32Id), 100, Deflated(kFloat16Id, 2, Bytes(199, 0)), "Float16: wrong length", 2));
  CHECK(Refuses(kDeflate, Options(kFloat32Id), 100, {kFloat16Id, 0, 1, 2, 3}, "Float16: wrong length", 5));
  Bytes infinite;
  for (int i = 0; i < 100; ++i) infinite.insert(infinite.end(), {0, 0, 0x80, 0x7f});
  for (uint8_t inner : {kFloat32Id, kQSGDId})
    CHECK(Refuses(kDeflate, Options(kFloat32Id), 100, Deflated(inner, 1, infinite), "Deflate: value is not finite", 2));
}

TEST("An application's code comes back from Deflate, stored when it is long") {
  if (Zlib() == nullptr) return;
  for (size_t length : {1, 2, 500, 1024, 1184, 1185, 5000}) {
    const Bytes inner(length, 7);
    Bytes code(kDeflateHeaderLength + length), back(6000);
    code.resize(DeflateCode(Options(kApplicationId), inner, 10, code.data()));
    CHECK(code[0] == kApplicationId && code[1] == (length >= 500 && length <= 1184 ? 1 : 0));
    size_t read = 0;
    CHECK(InflateApplicationCode(Options(kFloat32Id), code, 10, back, &read).ok());
    back.resize(read);
    CHECK(back == inner);
  }
  Bytes back(1 << 20);
  size_t length = 0;
  for (const Bytes& code :
       {Deflated(kApplicationId, 1, Bytes(1185, 0)), Deflated(kApplicationId, 2, Bytes(100, 0)), Deflated(kQSGDId, 1, Bytes(100, 0))}) {
    CHECK(!InflateApplicationCode(Options(kFloat32Id), code, 10, back, &length).ok());
  }
}

}  // namespace
}  // namespace deepreduce::testing
