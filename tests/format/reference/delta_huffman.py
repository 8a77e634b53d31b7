"""DeltaHuffman: the gaps by their number of bytes."""

from __future__ import annotations

import numpy as np

from format.reference.huffman_gaps import decode_gaps, encode_gaps
from format.reference.index_codes import IndexCode, register

DELTA_HUFFMAN_SYMBOLS = [(0, 8), (256, 16), (256 + 256**2, 24), (256 + 256**2 + 256**3, 32)]


def encode_delta_huffman(size: int, indices: np.ndarray) -> bytes:
    return encode_gaps(size, indices, DELTA_HUFFMAN_SYMBOLS)


def decode_delta_huffman(size: int, count: int, code: bytes) -> np.ndarray:
    return decode_gaps(size, count, code, DELTA_HUFFMAN_SYMBOLS)


DELTA_HUFFMAN = register(IndexCode(7, "DeltaHuffman", encode_delta_huffman, decode_delta_huffman))
