"""QSGD: levels under a scale for each 512 values."""

from __future__ import annotations

import numpy as np

from format.reference.bits import LARGEST_FLOAT, SMALLEST_SCALE, check_scales, floats, pack_bits, packed_length, require, unpack_bits
from format.reference.value_codes import ValueCode, register

SCALE_GROUP = 512


def groups_of(number: int) -> int:
    return (number + SCALE_GROUP - 1) // SCALE_GROUP


def write_qsgd(bits: int, l2: bool, scales: np.ndarray, magnitudes: np.ndarray, negative: np.ndarray) -> bytes:
    """The bytes for given scales and levels, also such that no encoder chooses."""
    levels = np.asarray(magnitudes, np.int64) | np.asarray(negative, np.int64) << (bits - 1)
    return bytes([bits | l2 << 4]) + np.asarray(scales, "<f4").tobytes() + pack_bits(levels, bits)


def encode_qsgd(values: np.ndarray, bits: int = 8, noise: np.ndarray | float = 0.5) -> bytes:
    """Max norm. A magnitude m becomes the level floor(m * s / scale + noise); noise 0.5 rounds to nearest."""
    s = 2 ** (bits - 1) - 1
    starts = np.arange(0, len(values), SCALE_GROUP)
    scales = np.maximum.reduceat(np.abs(values), starts)
    scales[scales < SMALLEST_SCALE] = 0
    scale = np.repeat(scales, SCALE_GROUP)[: len(values)].astype(np.float64)
    relative = np.divide(np.abs(values), scale, out=np.zeros(len(values)), where=scale > 0)
    magnitudes = np.where(scale > 0, np.minimum(np.floor(relative * s + noise), s), 0).astype(np.int64)
    return write_qsgd(bits, False, scales, magnitudes, (values < 0) & (magnitudes > 0))


def decode_qsgd(number: int, code: bytes) -> np.ndarray:
    bits = code[0] & 0x0F
    require(not code[0] & 0xE0, "reserved bits")
    require(2 <= bits <= 8, "bits of a level")
    levels_at = 1 + 4 * groups_of(number)
    require(len(code) == levels_at + packed_length(number, bits), "value code length")
    scales = floats(code[1:levels_at])
    check_scales(scales)
    levels = unpack_bits(code[levels_at:], number, bits)
    magnitudes, negative = levels & (2 ** (bits - 1) - 1), levels >> (bits - 1) == 1
    require(not negative[magnitudes == 0].any(), "sign of a zero")
    step = np.repeat(scales / np.float32(2 ** (bits - 1) - 1), SCALE_GROUP)[:number]
    require(not magnitudes[step == 0].any(), "level under scale 0")
    with np.errstate(over="ignore"):
        values = np.minimum(magnitudes.astype(np.float32) * step, LARGEST_FLOAT)
    return np.where(negative, -values, values)


QSGD = register(ValueCode(4, "QSGD", encode_qsgd, decode_qsgd))
