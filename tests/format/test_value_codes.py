"""What holds for every value codec: the empty form, the raw form, and values that are finite."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from format import reference
from format.arrays import same_bits, spread_arrays, values_arrays
from format.reference import FormatError
from format.reference.deflate import DEFLATE
from format.reference.double_exp_fit import DOUBLE_EXP_FIT
from format.reference.float32 import FLOAT32
from format.reference.poly_fit import POLY_FIT
from format.reference.three_lc import THREE_LC

VALUE_CODES = sorted(reference.VALUE_CODES.values(), key=lambda codec: codec.id)
CODED = [codec for codec in VALUE_CODES if codec is not FLOAT32]
LENGTH_IN_BYTES = (DEFLATE, POLY_FIT, DOUBLE_EXP_FIT, THREE_LC)  # what is cut off is another error


@given(values_arrays | spread_arrays, st.sampled_from([FLOAT32, DEFLATE]))
def test_lossless_values_come_back(values, codec):
    code = reference.encode_value(codec, values)
    assert len(code) <= 4 * len(values)
    assert same_bits(reference.decode_value(codec, len(values), code), values)


@given(st.sampled_from(VALUE_CODES), st.sampled_from([np.nan, np.inf, -np.inf]), st.integers(0, 39))
def test_a_segment_with_a_value_that_is_not_finite_is_raw(codec, value, position):
    values = np.ones(40, np.float32)
    values[position] = value
    code = reference.encode_value(codec, values)
    assert code == values.tobytes() and same_bits(reference.decode_value(codec, 40, code), values)


@settings(max_examples=300)
@given(st.sampled_from(CODED), st.integers(1, 40), st.data())
def test_coded_values_that_decode_are_finite(codec, number, data):
    code = data.draw(st.binary(max_size=4 * number - 1))
    try:
        values = reference.decode_value(codec, number, code)
    except FormatError:
        return
    assert len(values) == number and np.isfinite(values).all()


@pytest.mark.parametrize("codec", VALUE_CODES)
def test_refuses_a_code_of_a_length_the_codec_never_has(decoder, codec):
    for number, code in ((6, b""), (6, bytes(25)), (0, b"\0")):
        with decoder.refuses("value code length"):
            decoder.decode_value(codec, number, code)
    if codec not in LENGTH_IN_BYTES:
        shorter = reference.encode_value(codec, np.array([1, -3, 0, 8, -1.5, 0], np.float32))[:-1]
        with decoder.refuses("value code length"):
            decoder.decode_value(codec, 6, shorter)
