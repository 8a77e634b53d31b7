"""SketchML: round trips, and bytes that no encoder writes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from format import reference
from format.arrays import same_bits, spread_arrays, values_arrays
from format.decoders import sent_by_ops
from format.reference.canonical_code import NO_WORD
from format.reference.sketch_ml import SKETCH_ML, write_sketch_ml

ONE, TWO, EIGHT = 0x3F80, 0x4000, 0x4100
MEANS = [ONE, TWO, EIGHT]
SYMBOLS = [1, 4, 1, 0, 1, 3, 1, 6, 1, 0]
VALUES = [1, -2, 1, 0, 1, 2, 1, -8, 1, 0]


def code(means=MEANS, symbols=SYMBOLS, zeros=True, **fields):
    return write_sketch_ml(means, symbols, zeros, **fields)


def test_takes_buckets_with_and_without_zeros_and_zeros_alone(decoder):
    assert decoder.decode_value(SKETCH_ML, 10, code()).tolist() == VALUES
    assert decoder.decode_value(SKETCH_ML, 10, code(symbols=[0, 1, 2, 3, 5] * 2, zeros=False)).tolist() == [1, -1, 2, -2, -8] * 2
    assert same_bits(decoder.decode_value(SKETCH_ML, 99, code([], [0])), np.zeros(99, np.float32))
    assert decoder.decode_value(SKETCH_ML, 99, code([EIGHT], [1], zeros=False)).tolist() == [-8] * 99


def test_takes_any_lengths_that_are_complete(decoder):
    lengths = [3, 2, 3, 2, 3, NO_WORD, 3]
    assert decoder.decode_value(SKETCH_ML, 10, code(lengths=lengths)).tolist() == VALUES


def test_takes_means_at_the_limits(decoder):
    decoded = decoder.decode_value(SKETCH_ML, 10, code([0x80, 0x7F7F], [0, 1, 2, 3, 0] * 2, zeros=False))
    assert decoded[0] == 2.0**-126 and np.isfinite(decoded).all() and decoded[2] > 3.38e38


def test_takes_256_buckets(decoder):
    decoded = decoder.decode_value(SKETCH_ML, 512, code(range(ONE, ONE + 256), range(512), zeros=False))
    assert len(np.unique(decoded)) == 512


@pytest.mark.parametrize("means", [[0x7F, ONE, TWO], [0, ONE, TWO], [ONE, TWO, 0x7F80], [ONE, 0x7FFF, 0x8000]])
def test_refuses_means_out_of_range(decoder, means):
    with decoder.refuses("mean from 2^-126 to the largest"):
        decoder.decode_value(SKETCH_ML, 10, code(means))


def test_refuses_differences_wider_than_needed(decoder):
    with decoder.refuses("smallest width of the differences"):
        decoder.decode_value(SKETCH_ML, 10, code(width=9))
    with decoder.refuses("smallest width of the differences"):
        decoder.decode_value(SKETCH_ML, 10, code([EIGHT], [0, 1] * 5, width=1))


@pytest.mark.parametrize("buckets", [257, 511])
def test_refuses_more_than_256_buckets(decoder, buckets):
    with decoder.refuses("number of buckets"):
        decoder.decode_value(SKETCH_ML, 400, code(range(ONE, ONE + 256), range(400), buckets=buckets))


def test_refuses_neither_buckets_nor_zeros(decoder):
    with decoder.refuses("buckets or zeros"):
        decoder.decode_value(SKETCH_ML, 10, code([], [0], zeros=False, lengths=[0]))


def test_refuses_a_claim_of_zeros_without_one(decoder):
    with decoder.refuses("zeros in the segment"):
        decoder.decode_value(SKETCH_ML, 10, code(symbols=[1, 3, 4, 5, 6] * 2))


def test_refuses_a_bucket_without_values(decoder):
    with decoder.refuses("values in each bucket"):
        decoder.decode_value(SKETCH_ML, 10, code(symbols=[0, 1, 2, 5, 6] * 2))
    with decoder.refuses("values in each bucket"):
        decoder.decode_value(SKETCH_ML, 10, code(symbols=[0, 1, 2, 3, 4] * 2))


def test_refuses_codes_with_too_many_words_or_too_few(decoder):
    with decoder.refuses("more words than fit"):
        decoder.decode_value(SKETCH_ML, 10, code(lengths=[2, 2, 2, 3, 2, NO_WORD, 1]))
    with decoder.refuses("words are missing"):
        decoder.decode_value(SKETCH_ML, 10, code(lengths=[3, 3, 3, 3, 3, 3, 3]))


def test_refuses_values_that_end_early_and_bytes_after_them(decoder):
    for length in range(13):
        with decoder.refuses("value code length"):
            decoder.decode_value(SKETCH_ML, 10, code()[:length])
    with decoder.refuses("value code length"):
        decoder.decode_value(SKETCH_ML, 10, code() + b"\0")
    with decoder.refuses("value code length"):
        decoder.decode_value(SKETCH_ML, 14, code())


def test_refuses_unused_bits_that_are_set(decoder):
    last = code(symbols=[*SYMBOLS, 1])
    assert decoder.decode_value(SKETCH_ML, 11, last).tolist() == [*VALUES, 1]
    with decoder.refuses("unused bits"):
        decoder.decode_value(SKETCH_ML, 11, last[:-1] + bytes([last[-1] | 0x80]))


@given(values_arrays | spread_arrays, st.integers(2, 8))
def test_the_reference_decodes_what_the_op_says_it_sends(values, bits):
    code, decoded = sent_by_ops(SKETCH_ML, values, 3, 4, bits=bits)
    assert same_bits(reference.decode_value(SKETCH_ML, len(values), code), decoded)


@given(values_arrays | spread_arrays, st.integers(2, 8))
def test_signs_and_zeros_come_back(values, bits):
    code = reference.encode_value(SKETCH_ML, values, bits=bits)
    decoded = reference.decode_value(SKETCH_ML, len(values), code)
    if len(code) == 4 * len(values):
        return
    zero = np.abs(values) < np.float32(2.0**-126)
    assert np.array_equal(decoded == 0, zero) and np.array_equal(np.signbit(decoded)[~zero], np.signbit(values)[~zero])
