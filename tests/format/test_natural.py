"""Natural: round trips, and bytes that no encoder writes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from format import reference
from format.arrays import same_bits, spread_arrays, values_arrays
from format.decoders import sent_by_ops
from format.reference.natural import NATURAL, write_natural


def code_of(magnitudes: list, width: int = 4, zeros: bool = True, lowest: int = 125, negative: tuple = (1,)) -> bytes:
    """The values at `negative` have a sign."""
    return write_natural(width, zeros, lowest, magnitudes, np.isin(np.arange(len(magnitudes)), negative))


FIVE = [3, 5, 1, 0, 3]  # of 2^-2 and zeros: 1, 4, 0.25, 0, 1


@given(values_arrays | spread_arrays, st.floats(0, 0.999))
def test_values_come_back_as_one_of_the_two_powers_around_them(values, noise):
    code = reference.encode_value(NATURAL, values, noise=noise)
    decoded = reference.decode_value(NATURAL, len(values), code)
    if len(code) == 4 * len(values):
        return
    fractions, exponents = np.frexp(np.abs(values).astype(np.float64))
    below = np.ldexp(1.0, exponents - 1)
    near = np.isin(np.abs(decoded), 2.0 ** np.arange(-126, 128)) & ((np.abs(decoded) == below) | (np.abs(decoded) == 2 * below))
    small = np.abs(values) < max(2.0**-126, np.abs(values).max() * 2.0**-124)
    assert (near | small).all()
    assert ((np.abs(decoded) == below) | (fractions != 0.5) | small).all(), "powers of two stay"
    assert ((decoded == 0) | (np.signbit(decoded) == np.signbit(values))).all()


@given(values_arrays | spread_arrays)
def test_the_reference_decodes_what_the_op_says_it_sends_and_writes_the_same_for_powers_of_two(values):
    code, decoded = sent_by_ops(NATURAL, values, 3, 4)
    assert same_bits(reference.decode_value(NATURAL, len(values), code), decoded)
    code, again = sent_by_ops(NATURAL, decoded, 5, 6)
    assert code.hex() == reference.encode_value(NATURAL, decoded).hex()
    assert same_bits(again, decoded)


@pytest.mark.parametrize("width", range(1, 9))
@pytest.mark.parametrize("zeros", [False, True])
def test_levels_of_every_width_come_back(decoder, width, zeros):
    magnitudes = [*range(min(2 ** (width - 1), 127 + zeros)), 0]
    lowest = 0 if zeros and width == 1 else 60
    expected = np.where(np.array(magnitudes) < zeros, 0, 2.0 ** (np.array(magnitudes) - zeros + lowest - 127))
    decoded = decoder.decode_value(NATURAL, len(magnitudes), code_of(magnitudes, width, zeros, lowest, ()))
    assert same_bits(decoded, expected.astype(np.float32))


def test_takes_the_smallest_and_the_largest_power(decoder):
    assert decoder.decode_value(NATURAL, 4, code_of([0, 0, 0, 0], 1, False, 1))[0] == np.float32(2.0**-126)
    assert decoder.decode_value(NATURAL, 4, code_of([0, 0, 0, 0], 1, False, 254))[1] == np.float32(-(2.0**127))
    assert decoder.decode_value(NATURAL, 5, code_of(FIVE)).tolist() == [1, -4, 0.25, 0, 1]


@pytest.mark.parametrize("first", [0x34, 0x54, 0x94])
def test_refuses_the_reserved_bits(decoder, first):
    with decoder.refuses("reserved bits"):
        decoder.decode_value(NATURAL, 5, bytes([first]) + code_of(FIVE)[1:])


@pytest.mark.parametrize("width", [0, 9, 15])
def test_refuses_levels_of_no_bits_or_more_than_8(decoder, width):
    with decoder.refuses("bits of a level"):
        decoder.decode_value(NATURAL, 5, bytes([0x10 | width]) + code_of(FIVE)[1:])


def test_refuses_another_length_and_unused_bits_that_are_set(decoder):
    code = code_of(FIVE)
    for wrong in (code[:1], code[:2], code[:-1], code + b"\0"):
        with decoder.refuses("value code length"):
            decoder.decode_value(NATURAL, 5, wrong)
    with decoder.refuses("unused bits"):
        decoder.decode_value(NATURAL, 5, code[:-1] + bytes([code[-1] | 0x80]))


def test_refuses_a_zero_with_a_sign_and_a_segment_said_to_hold_zeros_without_one(decoder):
    with decoder.refuses("sign of a zero"):
        decoder.decode_value(NATURAL, 5, code_of(FIVE, negative=(3,)))
    with decoder.refuses("zeros in the segment"):
        decoder.decode_value(NATURAL, 5, code_of([3, 5, 1, 1, 3]))


@pytest.mark.parametrize(
    ("magnitudes", "width", "zeros", "lowest"),
    [
        ([3, 5, 2, 0, 3], 4, True, 125),  # nothing at the smallest
        ([3, 5, 2, 1, 3], 4, False, 125),
        (FIVE, 4, True, 0),
        ([0, 0, 0, 0, 0], 1, False, 0),
        ([0, 0, 0, 0, 0], 1, True, 125),  # zeros alone
    ],
)
def test_refuses_a_smallest_exponent_that_no_value_has(decoder, magnitudes, width, zeros, lowest):
    with decoder.refuses("smallest exponent"):
        decoder.decode_value(NATURAL, 5, code_of(magnitudes, width, zeros, lowest, ()))


@pytest.mark.parametrize(
    ("magnitudes", "width", "zeros", "lowest"),
    [(FIVE, 4, True, 251), ([0, 1], 2, False, 254), ([0, 0], 1, False, 255), ([0, 127], 8, False, 100), ([1, 127, 0], 8, True, 129)],
)
def test_refuses_an_exponent_above_254_or_126_above_the_smallest(decoder, magnitudes, width, zeros, lowest):
    with decoder.refuses("largest exponent"):
        decoder.decode_value(NATURAL, len(magnitudes), code_of(magnitudes, width, zeros, lowest))


@pytest.mark.parametrize(("magnitudes", "zeros", "lowest"), [(FIVE, True, 125), ([0] * 5, False, 125), ([0] * 5, True, 0)])
def test_refuses_levels_wider_than_needed(decoder, magnitudes, zeros, lowest):
    narrow = 1 + max(magnitudes).bit_length()
    decoder.decode_value(NATURAL, 5, code_of(magnitudes, narrow, zeros, lowest, ()))
    for width in range(narrow + 1, 9):
        with decoder.refuses("width of a level"):
            decoder.decode_value(NATURAL, 5, code_of(magnitudes, width, zeros, lowest, ()))
