"""Deflate around other codecs: round trips, and bytes that no encoder writes, also of an application's codec."""

from __future__ import annotations

import zlib

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from deepreduce_tf import ops
from format import reference
from format.arrays import same_bits, spread_arrays, values_arrays
from format.decoders import REFUSED
from format.reference.bfloat16 import BFLOAT16
from format.reference.deflate import DEFLATE, number_bytes, shuffle
from format.reference.float16 import FLOAT16
from format.reference.float32 import FLOAT32
from format.reference.natural import NATURAL
from format.reference.qsgd import QSGD
from format.reference.tern_grad import TERN_GRAD, write_tern_grad
from format.reference.three_lc import THREE_LC

INNER = (FLOAT32, FLOAT16, BFLOAT16, QSGD, TERN_GRAD, NATURAL, THREE_LC)
ONES = np.ones(64, np.float32)


def deflated(inner: int, content: bytes, stride: int) -> bytes:
    return bytes([inner, stride]) + zlib.compress(shuffle(content, stride), 9)


def stored(inner: int, content: bytes) -> bytes:
    return bytes([inner, 0]) + content


@given(values_arrays | spread_arrays, st.sampled_from(INNER), st.booleans())
def test_values_come_back_as_from_the_inner_codec_or_raw(values, inner, shuffled):
    code = reference.encode_value(DEFLATE, values, inner=inner, shuffled=shuffled)
    assert len(code) <= 4 * len(values)
    expected = values if len(code) == 4 * len(values) else reference.decode_value(inner, len(values), reference.encode_value(inner, values))
    assert same_bits(reference.decode_value(DEFLATE, len(values), code), expected)


@pytest.mark.parametrize("inner", INNER)
def test_takes_the_inner_code_stored_deflated_and_raw(decoder, inner):
    code = reference.encode_value(inner, ONES)
    decoded = reference.decode_value(inner, 64, code)
    stride = number_bytes(inner, len(code), 64)
    for each in (1, stride):
        assert same_bits(decoder.decode_value(DEFLATE, 64, deflated(inner.id, code, each)), decoded)
    if inner != FLOAT32:
        assert same_bits(decoder.decode_value(DEFLATE, 64, stored(inner.id, code)), decoded)
    for each in (1, 4):
        assert same_bits(decoder.decode_value(DEFLATE, 64, deflated(inner.id, ONES.tobytes(), each)), ONES)


@pytest.mark.parametrize(("inner", "stride"), [(QSGD, 2), (QSGD, 4), (TERN_GRAD, 2), (FLOAT16, 4), (BFLOAT16, 4), (FLOAT32, 2)])
def test_refuses_a_stride_of_other_numbers(decoder, inner, stride):
    content = reference.encode_value(inner, np.ones(63, np.float32))
    content += bytes(-len(content) % stride)
    with decoder.refuses("stride of the byte shuffle"):
        decoder.decode_value(DEFLATE, 63, deflated(inner.id, content, stride))


@pytest.mark.parametrize("inner", [0, DEFLATE.id, 99, 255])
def test_refuses_an_inner_codec_that_there_is_not(decoder, inner):
    for code in (stored(inner, bytes(20)), deflated(inner, bytes(20), 1)):
        with decoder.refuses("codec under deflate"):
            decoder.decode_value(DEFLATE, 64, code)


@pytest.mark.parametrize("inner", INNER[1:])
def test_refuses_raw_values_that_are_not_finite_and_an_inner_code_longer_than_those(decoder, inner):
    with decoder.refuses("finite values"):
        decoder.decode_value(DEFLATE, 64, deflated(inner.id, np.full(64, np.inf, np.float32).tobytes(), 4))
    with decoder.refuses("length of the deflated content"):
        decoder.decode_value(DEFLATE, 64, deflated(inner.id, bytes(257), 1))
    for content in (b"", bytes(255)):
        with pytest.raises(REFUSED):
            decoder.decode_value(DEFLATE, 64, deflated(inner.id, content, 1))


def test_refuses_what_the_inner_codec_refuses(decoder):
    wrong = write_tern_grad(1, [250] * 13)
    for code in (stored(TERN_GRAD.id, wrong), deflated(TERN_GRAD.id, wrong, 1)):
        with decoder.refuses("byte of trits"):
            decoder.decode_value(DEFLATE, 64, code)
    with decoder.refuses("value code length"):
        decoder.decode_value(DEFLATE, 64, stored(TERN_GRAD.id, wrong[:-1]))
    with decoder.refuses("value code length"):
        decoder.decode_value(DEFLATE, 64, stored(FLOAT32.id, bytes(100)))


@pytest.mark.parametrize("length", [1024 + 16 * 5 + 1, 2**24, 2**28])
def test_a_stream_of_more_than_1024_bytes_and_16_a_value_is_refused(length):
    longest, code = (np.frombuffer(b"\xff\1" + zlib.compress(bytes(each), 1), np.uint8) for each in (1024 + 16 * 5, length))
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


def deflated_ones(content: bytes = shuffle(ONES.tobytes(), 4), inner: int = FLOAT32.id, stride: int = 4) -> bytes:
    """A code of 64 float32 with any content, inner id and stride."""
    return bytes([inner, stride]) + zlib.compress(content)


def test_takes_deflated_values_with_and_without_shuffle(decoder):
    assert same_bits(decoder.decode_value(DEFLATE, 64, deflated_ones()), ONES)
    assert same_bits(decoder.decode_value(DEFLATE, 64, deflated_ones(ONES.tobytes(), stride=1)), ONES)


@pytest.mark.parametrize("inner", [0, 6, 99, 255])
def test_refuses_another_codec_under_deflate(decoder, inner):
    with decoder.refuses("codec under deflate"):
        decoder.decode_value(DEFLATE, 64, deflated_ones(inner=inner))


@pytest.mark.parametrize("stride", [2, 3, 8])
def test_refuses_another_stride_of_raw_values_than_4_or_1(decoder, stride):
    with decoder.refuses("stride of the byte shuffle"):
        decoder.decode_value(DEFLATE, 64, deflated_ones(stride=stride))


@pytest.mark.parametrize(
    ("length", "stride", "name"),
    [
        (0, 1, "value code length"),
        (252, 1, "value code length"),
        (252, 4, "stride of the byte shuffle"),
        (257, 4, "length of the deflated content"),
        (2**24, 4, "length of the deflated content"),
    ],
)
def test_refuses_deflated_content_of_another_length(decoder, length, stride, name):
    with decoder.refuses(name):
        decoder.decode_value(DEFLATE, 64, deflated_ones(bytes(length), stride=stride)[:255])


def test_refuses_a_deflate_code_without_a_stream(decoder):
    for code in (b"\1", b"\1\4"):
        with decoder.refuses("value code length"):
            decoder.decode_value(DEFLATE, 64, code)


def test_refuses_a_broken_zlib_stream(decoder):
    code = deflated_ones()
    with decoder.refuses("zlib stream"):
        decoder.decode_value(DEFLATE, 64, code[:-1] + bytes([code[-1] ^ 1]))
    with decoder.refuses("zlib stream"):
        decoder.decode_value(DEFLATE, 64, code[:-1])
    with decoder.refuses("zlib stream"):
        decoder.decode_value(DEFLATE, 64, code[:2] + b"\0" + code[3:])


def test_refuses_a_zlib_stream_with_a_preset_dictionary(decoder):
    compressor = zlib.compressobj(zdict=b"\0\0\0\0")
    stream = compressor.compress(shuffle(ONES.tobytes(), 4)) + compressor.flush()
    with decoder.refuses("zlib stream"):
        decoder.decode_value(DEFLATE, 64, b"\1\4" + stream)


def test_refuses_bytes_after_the_zlib_stream(decoder):
    with decoder.refuses("bytes after the zlib stream"):
        decoder.decode_value(DEFLATE, 64, deflated_ones() + b"\0")


def test_refuses_deflated_values_that_are_not_finite(decoder):
    with decoder.refuses("finite values"):
        decoder.decode_value(DEFLATE, 64, deflated_ones(shuffle(np.full(64, np.inf, "<f4").tobytes(), 4)))
