"""Natural: signs and powers of two."""

from __future__ import annotations

import numpy as np

from format.reference.bits import pack_bits, packed_length, require, unpack_bits
from format.reference.value_codes import ValueCode, register

MAX_EXPONENT, MAX_OFFSET = 254, 126


def write_natural(width: int, zeros: bool, lowest: int, magnitudes: np.ndarray, negative: np.ndarray) -> bytes:
    """The bytes for given fields, also such that no encoder chooses."""
    levels = np.asarray(magnitudes, np.int64) | np.asarray(negative, np.int64) << (width - 1)
    return bytes([width | zeros << 4, lowest]) + pack_bits(levels, width)


def encode_natural(values: np.ndarray, noise: np.ndarray | float = 0.5) -> bytes:
    """A fraction f of a magnitude (1 + f) 2^k rounds up where f + noise is at least 1; noise 0.5 rounds to nearest."""
    bits = values.view(np.uint32).astype(np.int64)
    exponents, fractions = bits >> 23 & 0xFF, (bits & 0x7FFFFF) / 2**23
    exponents = np.where(exponents > 0, np.minimum(exponents + (fractions + noise >= 1), MAX_EXPONENT), 0)
    present = exponents >= max(1, exponents.max() - MAX_OFFSET)
    zeros = not present.all()
    lowest = int(exponents[present].min()) if present.any() else 0
    magnitudes = np.where(present, exponents - lowest + zeros, 0)
    width = 1 + int(magnitudes.max()).bit_length()
    return write_natural(width, zeros, lowest, magnitudes, present & (bits >> 31 == 1))


def decode_natural(number: int, code: bytes) -> np.ndarray:
    require(len(code) >= 2, "value code length")
    width, zeros, lowest = code[0] & 0x0F, code[0] >> 4 & 1, code[1]
    require(not code[0] & 0xE0, "reserved bits")
    require(1 <= width <= 8, "bits of a level")
    require(len(code) == 2 + packed_length(number, width), "value code length")
    levels = unpack_bits(code[2:], number, width)
    magnitudes, negative = levels & (2 ** (width - 1) - 1), levels >> (width - 1) == 1
    is_zero = magnitudes < zeros
    require(is_zero.any() or not zeros, "zeros in the segment")
    require(not negative[is_zero].any(), "sign of a zero")
    exponents = np.where(is_zero, 0, lowest + magnitudes - zeros)
    present = exponents[~is_zero]
    require((lowest > 0) == (len(present) > 0), "smallest exponent")
    require(len(present) == 0 or present.min() == lowest, "smallest exponent")
    require(len(present) == 0 or present.max() <= min(MAX_EXPONENT, lowest + MAX_OFFSET), "largest exponent")
    require(width == 1 + int(magnitudes.max()).bit_length(), "width of a level")
    return (exponents << 23 | negative.astype(np.int64) << 31).astype(np.uint32).view(np.float32)


NATURAL = register(ValueCode(11, "Natural", encode_natural, decode_natural))
