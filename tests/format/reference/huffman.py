"""Huffman: the gaps by their number of bits."""

from __future__ import annotations

import numpy as np

from format.reference.huffman_gaps import decode_gaps, encode_gaps
from format.reference.index_codes import IndexCode, register

HUFFMAN_SYMBOLS = [(2**c - 1, c) for c in range(31)]


def encode_huffman(size: int, indices: np.ndarray) -> bytes:
    return encode_gaps(size, indices, HUFFMAN_SYMBOLS)


def decode_huffman(size: int, count: int, code: bytes) -> np.ndarray:
    return decode_gaps(size, count, code, HUFFMAN_SYMBOLS)


HUFFMAN = register(IndexCode(6, "Huffman", encode_huffman, decode_huffman))
