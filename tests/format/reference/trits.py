"""Trits, five to a byte, and the scale that they stand for."""

from __future__ import annotations

import numpy as np

from format.reference.bits import SMALLEST_SCALE, check_scales, floats, require

POWERS = 3 ** np.arange(5)


def pack_trits(trits: np.ndarray) -> np.ndarray:
    """The bytes, as integers."""
    trits = np.asarray(trits, np.int64)
    return np.pad(trits, (0, -len(trits) % 5)).reshape(-1, 5) @ POWERS


def unpack_trits(packed: np.ndarray, number: int) -> np.ndarray:
    packed = np.asarray(packed, np.int64)
    require(bool((packed < 243).all()), "byte of trits")
    trits = (packed[:, None] // POWERS % 3).ravel()
    require(not trits[number:].any(), "trits without a value")
    return trits[:number]


def trits_of(negative: np.ndarray, kept: np.ndarray) -> np.ndarray:
    return np.where(kept, 1 + np.asarray(negative, np.int64), 0)


def scale_of(largest: np.float32) -> np.float32:
    return largest if largest >= SMALLEST_SCALE else np.float32(0)


def read_scale(code: bytes) -> np.float32:
    scale = floats(code)
    check_scales(scale)
    return scale[0]


def scaled(trits: np.ndarray, scale: np.float32) -> np.ndarray:
    require(scale > 0 or not trits.any(), "level under scale 0")
    return np.array([0, scale, -scale], np.float32)[trits]
