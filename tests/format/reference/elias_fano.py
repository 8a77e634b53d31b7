"""EliasFano: the high parts of the indices in unary, then their low bits."""

from __future__ import annotations

import numpy as np

from format.reference.bits import pack_stream, packed_length, require, unpack_bits
from format.reference.index_codes import IndexCode, check_support, register


def elias_fano_layout(size: int, count: int) -> tuple[int, int]:
    """Low bits of each index, and bits of the unary part."""
    low = max(k for k in range(31) if count << k <= size)
    return low, count + (size - 1 >> low)


def write_elias_fano(unary: np.ndarray, indices: np.ndarray, low: int) -> bytes:
    """The bytes for any unary part and the low bits of any indices."""
    return pack_stream(np.concatenate([unary, ((indices[:, None] >> np.arange(low)) & 1).ravel()]))


def encode_elias_fano(size: int, indices: np.ndarray) -> bytes:
    low, length = elias_fano_layout(size, len(indices))
    unary = np.zeros(length, np.int64)
    unary[(indices >> low) + np.arange(len(indices))] = 1
    return write_elias_fano(unary, indices, low)


def decode_elias_fano(size: int, count: int, code: bytes) -> np.ndarray:
    low, length = elias_fano_layout(size, count)
    bits_of_all = length + count * low
    require(len(code) == packed_length(bits_of_all, 1), "index code length")
    bits = unpack_bits(code, bits_of_all, 1)
    ones = np.flatnonzero(bits[:length])
    require(len(ones) == count, "bits set in the unary part")
    indices = (ones - np.arange(count)) << low | bits[length:].reshape(count, low) @ (1 << np.arange(low, dtype=np.int64))
    check_support(size, indices)
    return indices


ELIAS_FANO = register(IndexCode(4, "EliasFano", encode_elias_fano, decode_elias_fano))
