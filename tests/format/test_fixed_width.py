"""FixedWidth, and the raw form of all index codecs."""

from __future__ import annotations

import pytest

from format.reference.bits import pack_bits
from format.reference.fixed_width import FIXED_WIDTH


@pytest.mark.parametrize("code", [b"", b"\0\0"])
def test_refuses_a_length_that_is_not_the_one_of_raw(decoder, code):
    with decoder.refuses("index code length"):
        decoder.decode_index(FIXED_WIDTH, 100, 3, code)


@pytest.mark.parametrize("indices", [[3, 3, 64], [17, 3, 64], [3, 64, 17]])
def test_refuses_raw_indices_that_do_not_ascend(decoder, indices):
    with decoder.refuses("ascending indices"):
        decoder.decode_index(FIXED_WIDTH, 100, 3, pack_bits(indices, 7))


def test_refuses_a_raw_index_that_is_not_below_size(decoder):
    with decoder.refuses("index below size"):
        decoder.decode_index(FIXED_WIDTH, 100, 3, pack_bits([3, 17, 100], 7))


def test_refuses_unused_bits_that_are_set(decoder):
    with decoder.refuses("unused bits"):
        decoder.decode_index(FIXED_WIDTH, 100, 3, b"\x83\x08\x90")
