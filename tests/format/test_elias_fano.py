"""EliasFano: bytes that no encoder writes."""

from __future__ import annotations

import numpy as np
import pytest

from format.decoders import check_refuses_raw
from format.reference.elias_fano import ELIAS_FANO, elias_fano_layout, write_elias_fano

SUPPORT = [5, 20, 28, 61, 70, 90]


def elias_fano(indices: list[int], unary: tuple[int, ...] = (0, 2, 3, 6, 8, 10)) -> bytes:
    """The code of six of a hundred indices with these bits of the unary part set, and the low bits of these indices."""
    low, length = elias_fano_layout(100, 6)
    return write_elias_fano(np.isin(np.arange(length), unary), np.array(indices), low)


@pytest.mark.parametrize("code", [b"", b"\1\2"])
def test_refuses_another_length(decoder, code):
    with decoder.refuses("index code length"):
        decoder.decode_index(ELIAS_FANO, 100, 3, code)


def test_refuses_unused_bits_that_are_set(decoder):
    with decoder.refuses("unused bits"):
        decoder.decode_index(ELIAS_FANO, 100, 6, b"\x4d\x55\xc4\x6d\x8a")


def test_refuses_raw_indices_where_the_coded_form_is_shorter(decoder):
    check_refuses_raw(decoder, ELIAS_FANO, 20, [0, 2, 3, 7, 11, 19])


def test_takes_the_low_and_high_parts(decoder):
    assert decoder.decode_index(ELIAS_FANO, 100, 6, elias_fano(SUPPORT)).tolist() == SUPPORT


@pytest.mark.parametrize("unary", [(0, 2, 3, 6, 8), (0, 2, 3, 6, 8, 10, 11), ()])
def test_refuses_a_unary_part_with_another_number_of_bits_set(decoder, unary):
    with decoder.refuses("bits set in the unary part"):
        decoder.decode_index(ELIAS_FANO, 100, 6, elias_fano(SUPPORT, unary))


@pytest.mark.parametrize("indices", [[5, 28, 20, 61, 70, 90], [5, 20, 20, 61, 70, 90]])
def test_refuses_low_bits_that_do_not_ascend(decoder, indices):
    with decoder.refuses("ascending indices"):
        decoder.decode_index(ELIAS_FANO, 100, 6, elias_fano(indices))


def test_refuses_an_index_that_is_not_below_size(decoder):
    assert decoder.decode_index(ELIAS_FANO, 100, 6, elias_fano([5, 20, 28, 61, 70, 99], (0, 2, 3, 6, 8, 11)))[-1] == 99
    with decoder.refuses("index below size"):
        decoder.decode_index(ELIAS_FANO, 100, 6, elias_fano([5, 20, 28, 61, 70, 100], (0, 2, 3, 6, 8, 11)))
