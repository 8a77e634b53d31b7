"""Rice: its parameter, and bytes that no encoder writes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from format.decoders import check_refuses_raw
from format.reference.rice import RICE, rice_bits, write_rice

SUPPORT = np.array([5, 20, 28, 61, 70, 90])
GAPS = np.diff(SUPPORT, prepend=-1) - 1
CODE = write_rice(GAPS, 3, False)


@given(st.lists(st.integers(0, 2**31 - 2), min_size=1, max_size=30).map(lambda gaps: np.array(gaps, np.int64)))
def test_the_bits_of_rice_are_convex_in_its_parameter(gaps):
    bits = [rice_bits(gaps, parameter) for parameter in range(40)]
    assert (np.diff(bits, n=2) >= 0).all()
    assert min(bits) == min(bits[:31]), "a parameter above 30 is never needed"


def test_refuses_an_empty_code(decoder):
    with decoder.refuses("index code length"):
        decoder.decode_index(RICE, 100, 3, b"")


def test_refuses_unused_bits_that_are_set(decoder):
    with decoder.refuses("unused bits"):
        decoder.decode_index(RICE, 40, 37, b"\x43\x99\x64")


def test_refuses_raw_indices_where_the_gaps_are_shorter(decoder):
    check_refuses_raw(decoder, RICE, 20, [0, 1, 2, 3, 4])


@pytest.mark.parametrize("parameter", [2, 4, 5])
def test_refuses_a_parameter_that_is_not_the_best(decoder, parameter):
    with decoder.refuses("best rice parameter"):
        decoder.decode_index(RICE, 4096, 6, write_rice(GAPS, parameter, False))


def test_refuses_the_larger_of_two_equally_good_parameters(decoder):
    gaps = np.array([1, 1, 1, 1])
    assert rice_bits(gaps, 0) == rice_bits(gaps, 1)
    assert decoder.decode_index(RICE, 4096, 4, write_rice(gaps, 0, False)).tolist() == [1, 3, 5, 7]
    with decoder.refuses("best rice parameter"):
        decoder.decode_index(RICE, 4096, 4, write_rice(gaps, 1, False))


def test_refuses_a_parameter_above_30(decoder):
    with decoder.refuses("rice parameter"):
        decoder.decode_index(RICE, 2**31 - 1, 3, b"\x1f\1\0\0\0")


def test_refuses_the_reserved_bit(decoder):
    with decoder.refuses("reserved bits"):
        decoder.decode_index(RICE, 4096, 6, b"\x83" + CODE[1:])


def test_refuses_the_complement_of_a_sparse_support_and_the_support_itself_of_a_dense_one(decoder):
    with decoder.refuses("rice complement"):
        decoder.decode_index(RICE, 4096, 6, write_rice(GAPS, 3, True))
    with decoder.refuses("rice complement"):
        decoder.decode_index(RICE, 40, 37, b"\x03\x99\x24")
    with decoder.refuses("rice complement"):
        decoder.decode_index(RICE, 40, 20, b"\x40\xff\xff\x0f")


def test_refuses_gaps_that_end_early(decoder):
    for length in range(1, len(CODE)):
        with decoder.refuses("rice gaps end early"):
            decoder.decode_index(RICE, 4096, 6, CODE[:length])


def test_refuses_bytes_after_the_gaps(decoder):
    with decoder.refuses("bytes after the rice gaps"):
        decoder.decode_index(RICE, 4096, 6, CODE + b"\0")


def test_refuses_gaps_that_leave_the_size(decoder):
    with decoder.refuses("index below size"):
        decoder.decode_index(RICE, 90, 6, CODE)
