"""QSGD: round trips, and bytes that no encoder writes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from format import reference
from format.arrays import same_bits, spread_arrays, values_arrays
from format.decoders import sent_by_ops
from format.reference.bits import pack_bits
from format.reference.qsgd import QSGD


def qsgd(first: int = 4, scale: float = 1.75, levels: tuple = (2, 9, 3, 0, 15, 4)) -> bytes:
    return bytes([first]) + np.float32(scale).tobytes() + pack_bits(levels, 4)


@given(values_arrays | spread_arrays, st.integers(2, 8), st.floats(0, 0.999))
def test_qsgd_values_come_back_within_one_level(values, bits, noise):
    decoded = reference.decode_value(QSGD, len(values), reference.encode_value(QSGD, values, bits=bits, noise=noise))
    for start in range(0, len(values), 512):
        group = values[start : start + 512].astype(np.float64)
        step = np.abs(group).max() / (2 ** (bits - 1) - 1)
        assert (np.abs(decoded[start : start + 512] - group) <= step * 1.000001 + 2.0**-100).all()


@given(values_arrays | spread_arrays, st.integers(2, 8), st.sampled_from(["max", "l2"]))
def test_the_reference_decodes_what_the_qsgd_op_says_it_sends(values, bits, norm):
    if norm == "l2" and bits < 6:
        bits = 6
    code, decoded = sent_by_ops(QSGD, values, 3, 4, bits=bits, norm=norm)
    assert same_bits(reference.decode_value(QSGD, len(values), code), decoded)


def test_takes_qsgd_of_either_norm_and_any_scale_within_the_limits(decoder):
    for first in (4, 0x14):
        assert decoder.decode_value(QSGD, 6, qsgd(first)).tolist() == [0.5, -0.25, 0.75, 0, -1.75, 1]
    assert decoder.decode_value(QSGD, 6, qsgd(scale=0, levels=(0,) * 6)).tolist() == [0] * 6
    assert decoder.decode_value(QSGD, 6, qsgd(scale=2.0**-100))[4] == np.float32(-(2.0**-100))
    assert np.isfinite(decoder.decode_value(QSGD, 6, qsgd(scale=3.4028235e38))).all()


@pytest.mark.parametrize("first", [0x24, 0x44, 0x84])
def test_refuses_the_reserved_bits_of_qsgd(decoder, first):
    with decoder.refuses("reserved bits"):
        decoder.decode_value(QSGD, 6, qsgd(first))


@pytest.mark.parametrize("first", [0, 1, 9, 15])
def test_refuses_levels_of_fewer_than_2_or_more_than_8_bits(decoder, first):
    with decoder.refuses("bits of a level"):
        decoder.decode_value(QSGD, 6, qsgd(first))


@pytest.mark.parametrize("scale", [np.inf, np.nan, -1.75, -0.0])
def test_refuses_a_scale_that_is_not_finite_or_has_a_sign(decoder, scale):
    with decoder.refuses("scale finite and not negative"):
        decoder.decode_value(QSGD, 6, qsgd(scale=scale))


@pytest.mark.parametrize("scale", [2.0**-149, 2.0**-126, np.nextafter(np.float32(2.0**-100), np.float32(0))])
def test_refuses_a_scale_below_2_to_the_minus_100(decoder, scale):
    with decoder.refuses("scale 0 or at least 2^-100"):
        decoder.decode_value(QSGD, 6, qsgd(scale=scale))


def test_refuses_a_negative_zero_level_of_qsgd(decoder):
    with decoder.refuses("sign of a zero"):
        decoder.decode_value(QSGD, 6, qsgd(levels=(2, 9, 3, 8, 15, 4)))


def test_refuses_a_level_under_scale_0(decoder):
    with decoder.refuses("level under scale 0"):
        decoder.decode_value(QSGD, 6, qsgd(scale=0, levels=(0, 0, 1, 0, 0, 0)))


def test_refuses_unused_bits_that_are_set(decoder):
    code = reference.encode_value(QSGD, np.array([1, -3, 0, 8, -1.5, 0], np.float32), bits=3)
    with decoder.refuses("unused bits"):
        decoder.decode_value(QSGD, 6, code[:-1] + bytes([code[-1] | 0x80]))
