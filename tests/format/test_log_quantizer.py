"""LogQuantizer: round trips, and bytes that no encoder writes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from format import reference
from format.arrays import spread_arrays, values_arrays
from format.decoders import encode_value_with_ops
from format.reference.bits import pack_bits
from format.reference.log_quantizer import LOG_QUANTIZER, log_bins


def log_code(first: int = 0x23, numbers: tuple = (1, 8), levels: tuple = (1, 6, 0, 3, 5, 0)) -> bytes:
    return bytes([first]) + np.array(numbers, "<f4").tobytes() + pack_bits(levels, first & 0x0F)


def log_table(first: int = 0x32, means: tuple = (2,), levels: tuple = (1, 3, 0, 1) * 4) -> bytes:
    return log_code(first, means, levels)


@given(values_arrays | spread_arrays, st.integers(2, 8))
def test_log_quantizer_keeps_signs_zeros_and_the_range_of_magnitudes(values, bits):
    code = reference.encode_value(LOG_QUANTIZER, values, bits=bits)
    decoded = reference.decode_value(LOG_QUANTIZER, len(values), code)
    if len(code) == 4 * len(values):
        return
    zero = np.abs(values) < np.float32(2.0**-126)
    assert np.array_equal(decoded == 0, zero) and np.array_equal(np.signbit(decoded)[~zero], np.signbit(values)[~zero])
    if not zero.all():
        magnitudes = np.abs(values[~zero])
        assert np.abs(decoded[~zero]).min() >= magnitudes.min() and np.abs(decoded[~zero]).max() <= magnitudes.max()


@given(spread_arrays)
def test_log_quantizer_of_8_bits_stays_within_its_bin(values):
    code = reference.encode_value(LOG_QUANTIZER, values, bits=8)
    present = np.abs(values[values != 0]).view(np.uint32).astype(np.int64)
    if len(code) == 4 * len(values) or len(present) == 0:
        return
    decoded = reference.decode_value(LOG_QUANTIZER, len(values), code)
    bins = log_bins(8, bool((values == 0).any()))
    distance = np.abs(decoded[values != 0]).view(np.uint32).astype(np.int64) - present
    assert np.abs(distance).max() <= (present.max() - present.min()) / bins + 1


@given(values_arrays | spread_arrays, st.integers(2, 8))
def test_ops_write_the_same_log_quantizer_codes(values, bits):
    assert encode_value_with_ops(LOG_QUANTIZER, values, bits=bits).hex() == reference.encode_value(LOG_QUANTIZER, values, bits=bits).hex()


@pytest.mark.parametrize("first", [0x63, 0xA3])
def test_refuses_the_reserved_bits_of_log_quantizer(decoder, first):
    with decoder.refuses("reserved bits"):
        decoder.decode_value(LOG_QUANTIZER, 6, log_code(first))


@pytest.mark.parametrize("first", [0, 1, 9, 15])
def test_refuses_levels_of_fewer_than_2_or_more_than_8_bits(decoder, first):
    with decoder.refuses("bits of a level"):
        decoder.decode_value(LOG_QUANTIZER, 6, bytes([first]) + log_code()[1:])


def test_refuses_unused_bits_that_are_set(decoder):
    code = reference.encode_value(LOG_QUANTIZER, np.array([1, -3, 0, 8, -1.5, 0], np.float32), bits=3)
    with decoder.refuses("unused bits"):
        decoder.decode_value(LOG_QUANTIZER, 6, code[:-1] + bytes([code[-1] | 0x80]))


@pytest.mark.parametrize("bounds", [(8, 1), (0, 1), (-1, 8), (-0.0, 1), (1, np.inf), (np.nan, 8), (2.0**-127, 1)])
def test_refuses_a_lowest_and_highest_magnitude_that_are_none(decoder, bounds):
    with decoder.refuses("lowest and highest magnitude"):
        decoder.decode_value(LOG_QUANTIZER, 6, log_code(numbers=bounds))


def test_refuses_a_negative_zero_of_log_quantizer(decoder):
    with decoder.refuses("sign of a zero"):
        decoder.decode_value(LOG_QUANTIZER, 6, log_code(levels=(1, 6, 4, 3, 5, 0)))


def test_refuses_a_segment_said_to_hold_zeros_without_one(decoder):
    with decoder.refuses("zeros in the segment"):
        decoder.decode_value(LOG_QUANTIZER, 6, log_code(levels=(1, 6, 1, 3, 5, 1)))


def test_refuses_a_segment_of_zeros_with_other_bounds_than_1(decoder):
    assert decoder.decode_value(LOG_QUANTIZER, 6, log_code(numbers=(1, 1), levels=(0,) * 6)).tolist() == [0] * 6
    with decoder.refuses("bounds of a segment of zeros"):
        decoder.decode_value(LOG_QUANTIZER, 6, log_code(numbers=(1, 8), levels=(0,) * 6))


def test_refuses_a_table_of_bin_means_for_too_few_values_or_for_zeros_alone(decoder):
    assert decoder.decode_value(LOG_QUANTIZER, 16, log_table()).tolist() == [2, -2, 0, 2] * 4
    with decoder.refuses("table of bin means"):
        decoder.decode_value(LOG_QUANTIZER, 12, log_table(levels=(1, 3, 0, 1) * 3))
    with decoder.refuses("table of bin means"):
        decoder.decode_value(LOG_QUANTIZER, 16, log_table(means=(0,), levels=(0,) * 16))


def test_refuses_a_missing_table_of_bin_means(decoder):
    with decoder.refuses("table of bin means"):
        decoder.decode_value(LOG_QUANTIZER, 16, log_table(0x22, (1, 3)))


@pytest.mark.parametrize("mean", [np.inf, np.nan, -2, -0.0])
def test_refuses_a_bin_mean_that_is_not_finite_or_has_a_sign(decoder, mean):
    with decoder.refuses("bin mean finite and not negative"):
        decoder.decode_value(LOG_QUANTIZER, 16, log_table(means=(mean,)))


def test_refuses_a_bin_mean_below_2_to_the_minus_126(decoder):
    with decoder.refuses("bin mean 0 or at least 2^-126"):
        decoder.decode_value(LOG_QUANTIZER, 16, log_table(means=(2.0**-127,)))


@pytest.mark.parametrize("means", [(1, 0), (1, 2)])
def test_refuses_a_mean_of_an_empty_bin_and_an_empty_mean_of_a_bin(decoder, means):
    levels = (0, 1, 0, 1) * 8 if means == (1, 0) else (0,) * 32
    with decoder.refuses("bin mean 0 exactly for an empty bin"):
        decoder.decode_value(LOG_QUANTIZER, 32, log_table(0x12, means, levels))
