"""Bitmap: bytes that no encoder writes."""

from __future__ import annotations

import pytest

from format.decoders import check_refuses_raw
from format.reference.bitmap import BITMAP


def test_refuses_another_length(decoder):
    with decoder.refuses("index code length"):
        decoder.decode_index(BITMAP, 100, 3, b"\1\2")


def test_refuses_unused_bits_that_are_set(decoder):
    with decoder.refuses("unused bits"):
        decoder.decode_index(BITMAP, 20, 6, b"\x8d\x08\x18")


def test_refuses_raw_indices_where_the_bitmap_is_shorter(decoder):
    check_refuses_raw(decoder, BITMAP, 20, [0, 2, 3, 7, 11, 19])


@pytest.mark.parametrize("code", [b"\x8d\x08\x00", b"\x8d\x08\x09"])
def test_refuses_another_number_of_bits_set(decoder, code):
    with decoder.refuses("bits set in the bitmap"):
        decoder.decode_index(BITMAP, 20, 6, code)
