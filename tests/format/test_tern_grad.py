"""TernGrad and the trits: round trips, and bytes that no encoder writes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from format import reference
from format.arrays import same_bits, spread_arrays, values_arrays
from format.decoders import sent_by_ops
from format.reference.tern_grad import TERN_GRAD, write_tern_grad
from format.reference.trits import pack_trits, unpack_trits

SMALLEST = 2.0**-100


@given(st.lists(st.integers(0, 2), max_size=30))
def test_trits_come_back_from_their_bytes(trits):
    packed = pack_trits(trits)
    assert len(packed) == (len(trits) + 4) // 5 and (packed < 243).all()
    assert unpack_trits(packed, len(trits)).tolist() == trits


def test_each_byte_below_243_holds_other_trits(decoder):
    trits = np.array(np.meshgrid(*[range(3)] * 5, indexing="ij")).reshape(5, -1).T
    code = write_tern_grad(2, np.concatenate([pack_trits(each) for each in trits]))
    expected = np.array([0, 2, -2], np.float32)[trits.ravel()]
    assert same_bits(decoder.decode_value(TERN_GRAD, 5 * 243, code), expected)


@given(values_arrays | spread_arrays, st.floats(0, 0.999))
def test_values_come_back_as_zeros_or_the_scale_with_their_sign(values, noise):
    code = reference.encode_value(TERN_GRAD, values, noise=noise)
    decoded = reference.decode_value(TERN_GRAD, len(values), code)
    if len(code) == 4 * len(values):
        return
    largest = np.abs(values).max()
    scale = largest if largest >= SMALLEST else 0
    assert (np.isin(np.abs(decoded), [0, scale])).all()
    assert ((decoded == 0) | (np.signbit(decoded) == np.signbit(values))).all()
    assert (np.abs(decoded[np.abs(values) == scale]) == scale).all()


@given(values_arrays | spread_arrays, st.booleans())
def test_the_reference_decodes_what_the_op_says_it_sends(values, contraction):
    code, decoded = sent_by_ops(TERN_GRAD, values, 3, 4, contraction=contraction)
    assert same_bits(reference.decode_value(TERN_GRAD, len(values), code), decoded)


def test_takes_any_scale_within_the_limits(decoder):
    for scale in (SMALLEST, 1.5, 3.4028235e38):
        decoded = decoder.decode_value(TERN_GRAD, 3, write_tern_grad(scale, [1 + 2 * 3]))
        assert same_bits(decoded, np.array([scale, -scale, 0], np.float32))
    assert same_bits(decoder.decode_value(TERN_GRAD, 6, write_tern_grad(0, [0, 0])), np.zeros(6, np.float32))


@pytest.mark.parametrize("scale", [np.inf, np.nan, -1.5, -0.0])
def test_refuses_a_scale_that_is_not_finite_or_has_a_sign(decoder, scale):
    with decoder.refuses("scale finite and not negative"):
        decoder.decode_value(TERN_GRAD, 5, write_tern_grad(scale, [1]))


@pytest.mark.parametrize("scale", [2.0**-149, 2.0**-126, np.nextafter(np.float32(SMALLEST), np.float32(0))])
def test_refuses_a_scale_below_2_to_the_minus_100(decoder, scale):
    with decoder.refuses("scale 0 or at least 2^-100"):
        decoder.decode_value(TERN_GRAD, 5, write_tern_grad(scale, [1]))


@pytest.mark.parametrize("byte", [243, 250, 255])
def test_refuses_a_byte_that_holds_no_trits(decoder, byte):
    with decoder.refuses("byte of trits"):
        decoder.decode_value(TERN_GRAD, 10, write_tern_grad(1, [5, byte]))


@pytest.mark.parametrize("byte", [3, 9 + 2, 81])
def test_refuses_trits_without_a_value(decoder, byte):
    with decoder.refuses("trits without a value"):
        decoder.decode_value(TERN_GRAD, 6, write_tern_grad(1, [5, byte]))


def test_refuses_trits_under_scale_0(decoder):
    with decoder.refuses("level under scale 0"):
        decoder.decode_value(TERN_GRAD, 10, write_tern_grad(0, [0, 9]))


@pytest.mark.parametrize("packed", [[], [1], [1, 1, 0]])
def test_refuses_another_length(decoder, packed):
    with decoder.refuses("value code length"):
        decoder.decode_value(TERN_GRAD, 10, write_tern_grad(1, packed))
