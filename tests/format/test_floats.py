"""Float32, Float16 and BFloat16: rounding, and bytes that no encoder writes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from format import reference
from format.arrays import spread_arrays, values_arrays
from format.decoders import encode_value_with_ops
from format.reference.bfloat16 import BFLOAT16
from format.reference.float16 import FLOAT16
from format.reference.float32 import FLOAT32


@given(values_arrays | spread_arrays, st.sampled_from([(FLOAT16, 2.0**-11, 2.0**-25), (BFLOAT16, 2.0**-8, 2.0**-134)]))
def test_half_floats_come_back_within_half_a_unit_of_the_last_bit(values, rounding):
    codec, relative, absolute = rounding
    decoded = reference.decode_value(codec, len(values), reference.encode_value(codec, values))
    exact = values.astype(np.float64)
    assert (np.abs(decoded - exact) <= np.maximum(np.abs(exact) * relative, absolute)).all()


@given(values_arrays | spread_arrays, st.sampled_from([FLOAT32, FLOAT16, BFLOAT16]))
def test_ops_write_the_same_float_codes(values, codec):
    assert encode_value_with_ops(codec, values) == reference.encode_value(codec, values)


@pytest.mark.parametrize("code", [b"\x00\x7c\x00\x00", b"\x01\xfc\x00\x00"])
def test_refuses_a_float16_that_is_not_finite(decoder, code):
    with decoder.refuses("finite values"):
        decoder.decode_value(FLOAT16, 2, code)


@pytest.mark.parametrize("code", [b"\x80\x7f\x00\x00", b"\x81\xff\x00\x00"])
def test_refuses_a_bfloat16_that_is_not_finite(decoder, code):
    with decoder.refuses("finite values"):
        decoder.decode_value(BFLOAT16, 2, code)
