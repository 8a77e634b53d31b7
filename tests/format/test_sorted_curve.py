"""PolyFit and DoubleExpFit: every rule, held by both decoders, and the ops beside the reference."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from format import reference
from format.arrays import same_bits, spread_arrays, values_arrays
from format.decoders import OPS, sent_by_ops
from format.reference.double_exp_fit import DOUBLE_EXP_FIT
from format.reference.poly_fit import POLY_FIT
from format.reference.sorted_curve import DOUBLE_EXPONENTIAL, POLYNOMIAL, RAW, ZEROS, Piece, exponential, write_curve

BOTH = pytest.mark.parametrize("codec", [POLY_FIT, DOUBLE_EXP_FIT])
VALUES = [2, -1, 8, 6, 0, 4, 0, 10]
POSITIONS = [4, 5, 1, 2, 6, 3, 7, 0]


def piece(kind: int, length: int, *numbers: float, negative: bool = False) -> Piece:
    return Piece(kind, negative, length, np.array(numbers, np.float32))


LINE, ONE, TWO_ZEROS = piece(POLYNOMIAL, 5, 6, -4), piece(RAW, 1, 1, negative=True), piece(ZEROS, 2)


def curve(*pieces: Piece, degree: int = 1, positions: list[int] = POSITIONS) -> bytes:
    return write_curve(degree, list(pieces or (LINE, ONE, TWO_ZEROS)), np.array(positions))


@BOTH
def test_takes_any_pieces_of_the_same_values(decoder, codec):
    for pieces in (
        (LINE, ONE, TWO_ZEROS),
        (piece(RAW, 1, 10), piece(POLYNOMIAL, 4, 5, -3), ONE, TWO_ZEROS),
        (piece(RAW, 5, 10, 8, 6, 4, 2), ONE, TWO_ZEROS),
    ):
        assert decoder.decode_value(codec, 8, curve(*pieces)).tolist() == VALUES


@BOTH
@pytest.mark.parametrize("degree", [0, 16, 17, 255])
def test_refuses_a_degree_that_is_not_1_to_15(decoder, codec, degree):
    with decoder.refuses("degree of polynomials"):
        decoder.decode_value(codec, 8, curve(degree=degree))


def test_refuses_a_double_exponential_of_poly_fit(decoder):
    code = curve(piece(DOUBLE_EXPONENTIAL, 8, 4, -3, 1, -0.5))
    assert decoder.decode_value(DOUBLE_EXP_FIT, 8, code)[-1] == 5
    with decoder.refuses("kind of a piece"):
        decoder.decode_value(POLY_FIT, 8, code)


@BOTH
def test_refuses_zeros_with_a_sign(decoder, codec):
    assert decoder.decode_value(codec, 8, curve(piece(ZEROS, 8))).view(np.uint32).tolist() == [0] * 8
    with decoder.refuses("sign of zeros"):
        decoder.decode_value(codec, 8, curve(piece(ZEROS, 8, negative=True)))


@BOTH
@pytest.mark.parametrize(
    "pieces",
    [
        (piece(RAW, 1, 1, negative=True), piece(RAW, 1, 1), piece(ZEROS, 6)),
        (piece(ZEROS, 6), piece(RAW, 2, 1, 1)),
        (piece(ZEROS, 6), piece(RAW, 2, 1, 1, negative=True)),
        (piece(ZEROS, 6), piece(ZEROS, 2)),
    ],
)
def test_refuses_pieces_in_another_order(decoder, codec, pieces):
    with decoder.refuses("order of the pieces"):
        decoder.decode_value(codec, 8, curve(*pieces))


@BOTH
def test_refuses_pieces_of_more_values_than_there_are(decoder, codec):
    with decoder.refuses("lengths of the pieces"):
        decoder.decode_value(codec, 8, curve(LINE, piece(ZEROS, 4)))


@BOTH
def test_refuses_a_fitted_piece_of_too_few_values(decoder, codec):
    assert decoder.decode_value(codec, 8, curve(piece(POLYNOMIAL, 2, 1, 0), piece(ZEROS, 6)))[7] == 1
    with decoder.refuses("a fitted piece of more values than the degree"):
        decoder.decode_value(codec, 8, curve(piece(POLYNOMIAL, 1, 1, 0), piece(ZEROS, 7)))
    with decoder.refuses("a fitted piece of more values than the degree"):
        decoder.decode_value(DOUBLE_EXP_FIT, 8, curve(piece(DOUBLE_EXPONENTIAL, 8, 4, -3, 1, -0.5), degree=8))


@BOTH
@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
def test_refuses_numbers_that_are_not_finite(decoder, codec, number):
    for pieces in ((piece(POLYNOMIAL, 5, 6, number), ONE, TWO_ZEROS), (LINE, piece(RAW, 1, number, negative=True), TWO_ZEROS)):
        with decoder.refuses("numbers of a piece finite"):
            decoder.decode_value(codec, 8, curve(*pieces))


@BOTH
@pytest.mark.parametrize("number", [-1, 0, -0.0, 2.0**-127])
def test_refuses_raw_magnitudes_below_2_to_the_minus_126(decoder, codec, number):
    with decoder.refuses("raw magnitudes at least 2^-126"):
        decoder.decode_value(codec, 8, curve(LINE, piece(RAW, 1, number, negative=True), TWO_ZEROS))


@BOTH
@pytest.mark.parametrize("number", [2.0**-127, -(2.0**-149)])
def test_refuses_denormal_coefficients(decoder, codec, number):
    for zero in (0, -0.0):
        assert decoder.decode_value(codec, 8, curve(piece(POLYNOMIAL, 5, 6, zero), ONE, TWO_ZEROS))[7] == 6
    with decoder.refuses("coefficients not denormal"):
        decoder.decode_value(codec, 8, curve(piece(POLYNOMIAL, 5, 6, number), ONE, TWO_ZEROS))


@pytest.mark.parametrize("rate", [200.00002, -300])
@pytest.mark.parametrize("position", [1, 3])
def test_refuses_rates_beyond_200(decoder, rate, position):
    numbers = [3e38, 200, 3e38, -200]
    assert np.isfinite(decoder.decode_value(DOUBLE_EXP_FIT, 8, curve(piece(DOUBLE_EXPONENTIAL, 8, *numbers)))).all()
    numbers[position] = rate
    with decoder.refuses("rates at most 200"):
        decoder.decode_value(DOUBLE_EXP_FIT, 8, curve(piece(DOUBLE_EXPONENTIAL, 8, *numbers)))


@BOTH
def test_refuses_a_code_that_is_shorter_or_longer_than_its_headers_say(decoder, codec):
    for length in range(1, len(curve())):
        with decoder.refuses("value code length"):
            decoder.decode_value(codec, 8, curve()[:length])
    with decoder.refuses("value code length"):
        decoder.decode_value(codec, 8, curve() + b"\0")


@BOTH
def test_refuses_unused_bits_that_are_set(decoder, codec):
    code = bytearray(curve())
    code[3] |= 0x80
    with decoder.refuses("unused bits"):
        decoder.decode_value(codec, 8, bytes(code))
    for byte in (1, -1):  # of one header in 7 bits, of 11 positions in 4 bits each
        code = bytearray(curve(piece(POLYNOMIAL, 11, 6, -4), positions=list(range(11))))
        assert len(decoder.decode_value(codec, 11, bytes(code))) == 11
        code[byte] |= 0x80
        with decoder.refuses("unused bits"):
            decoder.decode_value(codec, 11, bytes(code))


@BOTH
@pytest.mark.parametrize("positions", [[4, 5, 1, 2, 6, 3, 7, 7], [0] * 8])
def test_refuses_positions_that_are_no_permutation(decoder, codec, positions):
    with decoder.refuses("positions are a permutation"):
        decoder.decode_value(codec, 8, curve(positions=positions))


@BOTH
def test_refuses_a_position_beyond_the_curve(decoder, codec):
    nine = (piece(POLYNOMIAL, 9, 6, -4),)
    assert len(decoder.decode_value(codec, 9, curve(*nine, positions=list(range(9))))) == 9
    with decoder.refuses("positions are a permutation"):
        decoder.decode_value(codec, 9, curve(*nine, positions=[0, 1, 2, 3, 4, 5, 6, 7, 9]))


def test_the_exponential_is_the_one_of_the_standard_library():
    z = np.concatenate([np.linspace(-200, 200, 40001), np.random.default_rng(1).normal(size=10000)])
    exact = np.array([math.exp(each) for each in z])
    assert np.abs(exponential(z) / exact - 1).max() < 1e-15


def changed(values: np.ndarray, kind: int) -> np.ndarray:
    """Signs and sizes of many kinds."""
    return [values, np.abs(values), -np.abs(values), values * np.float32(1e30), values * np.float32(1e-36), np.sort(values)][kind]


@given(values_arrays | spread_arrays, st.integers(0, 5), st.integers(1, 15), st.integers(0, 9))
def test_the_reference_decodes_what_the_poly_fit_op_says_it_sends(values, kind, degree, pieces):
    with np.errstate(over="ignore"):
        values = changed(values, kind)
    code, decoded = sent_by_ops(POLY_FIT, values, degree=degree, pieces=pieces)
    assert same_bits(reference.decode_value(POLY_FIT, len(values), code), decoded)


@given(values_arrays | spread_arrays, st.integers(0, 5))
def test_the_reference_decodes_what_the_double_exp_fit_op_says_it_sends(values, kind):
    with np.errstate(over="ignore"):
        values = changed(values, kind)
    code, decoded = sent_by_ops(DOUBLE_EXP_FIT, values)
    assert same_bits(reference.decode_value(DOUBLE_EXP_FIT, len(values), code), decoded)


@given(values_arrays | spread_arrays, st.sampled_from([POLY_FIT, DOUBLE_EXP_FIT]))
def test_the_ops_decode_what_the_reference_writes(values, codec):
    code = reference.encode_value(codec, values)
    assert len(code) <= 4 * len(values)
    assert same_bits(OPS.decode_value(codec, len(values), code), reference.decode_value(codec, len(values), code))
