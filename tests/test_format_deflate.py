"""Deflate of docs/format.md behind other codecs: round trips, bytes that no encoder writes, and the codes of an application's codec."""

from __future__ import annotations

import zlib

import format_reference as reference
import numpy as np
import pytest
import tensorflow as tf
from format_decoders import same_bits, spread_arrays, values_arrays
from format_reference import BFLOAT16, DEFLATE, FLOAT16, FLOAT32, NATURAL, QSGD, TERN_GRAD, THREE_LC
from hypothesis import given, settings
from hypothesis import strategies as st
from stages import HalfPrecision, ragged

from deepreduce_tf import DeepReduce, Deflate, ValueCodec, ops, value_codecs

INNER = (FLOAT32, FLOAT16, BFLOAT16, QSGD, TERN_GRAD, NATURAL, THREE_LC)
STAGES = ["float32", "float16", "b_float16", value_codecs.QSGD(4), "log_quantizer", "tern_grad", "natural", "three_lc"]
ONES = np.ones(64, np.float32)


def deflated(inner: int, content: bytes, stride: int) -> bytes:
    return bytes([inner, stride]) + zlib.compress(reference.shuffle(content, stride), 9)


def stored(inner: int, content: bytes) -> bytes:
    return bytes([inner, 0]) + content


@given(values_arrays | spread_arrays, st.sampled_from(INNER), st.booleans())
def test_values_come_back_as_from_the_inner_codec_or_raw(values, inner, shuffled):
    code = reference.encode_value(DEFLATE, values, inner=inner, shuffled=shuffled)
    assert len(code) <= 4 * len(values)
    expected = values if len(code) == 4 * len(values) else reference.decode_value(inner, len(values), reference.encode_value(inner, values))
    assert same_bits(reference.decode_value(DEFLATE, len(values), code), expected)


@settings(deadline=None)
@given(values_arrays | spread_arrays, st.sampled_from(STAGES), st.booleans())
def test_the_reference_decodes_what_the_stage_says_it_sends(values, inner, shuffle):
    code, decoded = Deflate(inner, shuffle=shuffle).encode(ragged([values], np.float32), 3, 4)
    code = code.values.numpy().tobytes()
    assert same_bits(reference.decode_value(DEFLATE, len(values), code), decoded.values.numpy())
    if len(code) < 4 * len(values):
        assert code[1] in ((0, 1) if not shuffle else (0, 1, 2, 4))


@pytest.mark.parametrize("inner", INNER)
def test_takes_the_inner_code_stored_deflated_and_raw(decoder, inner):
    code = reference.encode_value(inner, ONES)
    decoded = reference.decode_value(inner, 64, code)
    stride = reference.number_bytes(inner, len(code), 64)
    for each in (1, stride):
        assert same_bits(decoder.decode_value(DEFLATE, 64, deflated(inner, code, each)), decoded)
    if inner != FLOAT32:
        assert same_bits(decoder.decode_value(DEFLATE, 64, stored(inner, code)), decoded)
    for each in (1, 4):
        assert same_bits(decoder.decode_value(DEFLATE, 64, deflated(inner, ONES.tobytes(), each)), ONES)


@pytest.mark.parametrize(("inner", "stride"), [(QSGD, 2), (QSGD, 4), (TERN_GRAD, 2), (FLOAT16, 4), (BFLOAT16, 4), (FLOAT32, 2)])
def test_refuses_a_stride_of_other_numbers(decoder, inner, stride):
    content = reference.encode_value(inner, np.ones(63, np.float32))
    content += bytes(-len(content) % stride)
    with decoder.refuses("stride of the byte shuffle"):
        decoder.decode_value(DEFLATE, 63, deflated(inner, content, stride))


@pytest.mark.parametrize("inner", [0, DEFLATE, 99, 255])
def test_refuses_an_inner_codec_that_there_is_not(decoder, inner):
    for code in (stored(inner, bytes(20)), deflated(inner, bytes(20), 1)):
        with decoder.refuses("codec under deflate"):
            decoder.decode_value(DEFLATE, 64, code)


@pytest.mark.parametrize("inner", INNER[1:])
def test_refuses_raw_values_that_are_not_finite_and_an_inner_code_longer_than_those(decoder, inner):
    with decoder.refuses("finite values"):
        decoder.decode_value(DEFLATE, 64, deflated(inner, np.full(64, np.inf, np.float32).tobytes(), 4))
    with decoder.refuses("length of the deflated content"):
        decoder.decode_value(DEFLATE, 64, deflated(inner, bytes(257), 1))
    for content in (b"", bytes(255)):
        with pytest.raises((reference.FormatError, tf.errors.DataLossError)):
            decoder.decode_value(DEFLATE, 64, deflated(inner, content, 1))


def test_refuses_what_the_inner_codec_refuses(decoder):
    wrong = reference.write_tern_grad(1, [250] * 13)
    for code in (stored(TERN_GRAD, wrong), deflated(TERN_GRAD, wrong, 1)):
        with decoder.refuses("byte of trits"):
            decoder.decode_value(DEFLATE, 64, code)
    with decoder.refuses("value code length"):
        decoder.decode_value(DEFLATE, 64, stored(TERN_GRAD, wrong[:-1]))
    with decoder.refuses("value code length"):
        decoder.decode_value(DEFLATE, 64, stored(FLOAT32, bytes(100)))


# Behind a codec of the application


class Wide(ValueCodec):
    """Writes float64: more bytes than raw values."""

    def encode(self, values, seed, step):
        code = tf.reshape(tf.bitcast(tf.cast(values.values, tf.float64), tf.uint8), [-1])
        return tf.RaggedTensor.from_row_splits(code, 8 * values.row_splits), values

    def decode(self, code, counts):
        values = tf.bitcast(tf.reshape(code.values, [-1, 8]), tf.float64)
        return tf.RaggedTensor.from_row_lengths(tf.cast(values, tf.float32), counts)


class Padded(Wide):
    """Writes a kilobyte and more for each segment that has values."""

    def encode(self, values, seed, step):
        code = tf.zeros([3000 * tf.size(values.values)], tf.uint8)
        return tf.RaggedTensor.from_row_splits(code, 3000 * values.row_splits), tf.zeros_like(values)

    def decode(self, code, counts):
        return tf.RaggedTensor.from_row_lengths(tf.zeros([tf.size(code.values) // 3000]), counts)


@pytest.mark.parametrize("codec", [HalfPrecision(), Wide(), Padded()], ids=repr)
@pytest.mark.parametrize("run", [lambda f: f, tf.function], ids=["eager", "function"])
def test_an_applications_codec_gets_its_own_codes_back(codec, run):
    values = np.float32([*np.ones(300), *np.random.default_rng(0).normal(size=7), np.inf])
    stage, rows = Deflate(codec), tf.RaggedTensor.from_row_splits(values, np.array([0, 300, 300, 307, 308]))
    code, decoded = run(lambda: stage.encode(rows, 0, 0))()
    assert stage.codec_id == 255
    inner, expected = codec.encode(rows, 0, 0)
    for got, want in zip(ops.inflate(code.values, code.row_splits, rows.row_lengths()), (inner.values, inner.row_splits), strict=True):
        np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(stage.decode(code, rows.row_lengths()).values, expected.values)
    np.testing.assert_array_equal(decoded.values, expected.values)
    lengths = np.diff(code.row_splits)
    assert lengths[1] == 0 and lengths[0] < 60 + 900_002 * isinstance(codec, Padded)


def test_an_applications_code_that_is_longer_than_what_a_stream_may_hold_is_stored():
    code, _ = Deflate(Padded()).encode(ragged([np.zeros(7)], np.float32), 0, 0)
    assert code.row_lengths() == [2 + 21000] and code.values[1] == 0


@pytest.mark.parametrize("length", [1024 + 16 * 5 + 1, 2**24, 2**28])
def test_a_stream_of_more_than_1024_bytes_and_16_a_value_is_refused(length):
    longest, code = (np.frombuffer(deflated(255, bytes(each), 1), np.uint8) for each in (1024 + 16 * 5, length))
    assert len(ops.inflate(longest, [0, len(longest)], [5])[0]) == 1024 + 16 * 5
    with pytest.raises(tf.errors.DataLossError, match="segment 0 is damaged: Deflate: not a zlib stream of the right length at byte 2"):
        ops.inflate(code, [0, len(code)], [5])


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (b"\xff", "Deflate: code ends early"),
        (b"\xff\0", "Deflate: code ends early"),
        (b"\4\0abc", "Deflate: unknown inner codec"),
        (b"\xff\2abc", "Deflate: stride of other numbers"),
        (b"\xff\3abc", "Deflate: unknown stride"),
        (b"\xff\1abc", "Deflate: not a zlib stream"),
        (deflated(255, b"abc", 1)[:-1], "Deflate: not a zlib stream"),
        (deflated(255, b"abc", 1) + b"\0", "Deflate: not a zlib stream"),
    ],
)
def test_bytes_that_no_encoder_writes_are_refused(code, message):
    with pytest.raises(tf.errors.DataLossError, match=message):
        ops.inflate(np.frombuffer(code, np.uint8), [0, len(code)], [5])


def test_a_nested_stage_is_part_of_the_plan_that_ranks_compare_and_its_variables_are_those_of_the_compressor():
    from deepreduce_tf.stage import agreement, variables_of

    stage = HalfPrecision()
    stage.scale = tf.Variable(1.0)
    assert variables_of(Deflate(stage)) == [stage.scale]
    assert agreement(Deflate("float16")) != agreement(Deflate("b_float16"))
    assert any(variable is stage.scale for variable in DeepReduce(value=Deflate(stage))._stage_variables)
    assert repr(Deflate(value_codecs.QSGD(4), 9)) == "Deflate(value=QSGD(bits=4, norm='max'), level=9, shuffle=True)"


def test_the_contraction_of_a_nested_codec_is_the_one_used_under_error_feedback():
    stage = Deflate("tern_grad")
    assert stage.contraction().value.shrinks and not stage.value.shrinks
    assert stage.contraction() == stage
