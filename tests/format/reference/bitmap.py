"""Bitmap: one bit for each index."""

from __future__ import annotations

import numpy as np

from format.reference.bits import pack_stream, packed_length, require, unpack_bits
from format.reference.index_codes import IndexCode, register


def encode_bitmap(size: int, indices: np.ndarray) -> bytes:
    kept = np.zeros(size, np.uint8)
    kept[indices] = 1
    return pack_stream(kept)


def decode_bitmap(size: int, count: int, code: bytes) -> np.ndarray:
    require(len(code) == packed_length(size, 1), "index code length")
    indices = np.flatnonzero(unpack_bits(code, size, 1))
    require(len(indices) == count, "bits set in the bitmap")
    return indices


BITMAP = register(IndexCode(2, "Bitmap", encode_bitmap, decode_bitmap))
