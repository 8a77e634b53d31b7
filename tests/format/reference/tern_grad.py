"""TernGrad: trits under the largest magnitude of the segment."""

from __future__ import annotations

import numpy as np

from format.reference.bits import require
from format.reference.trits import pack_trits, read_scale, scale_of, scaled, trits_of, unpack_trits
from format.reference.value_codes import ValueCode, register


def write_tern_grad(scale: float, packed: np.ndarray) -> bytes:
    """The bytes for given fields, also such that no encoder chooses."""
    return np.float32(scale).tobytes() + bytes(list(packed))


def encode_tern_grad(values: np.ndarray, noise: np.ndarray | float = 0.5) -> bytes:
    """A magnitude m is kept where m / scale + noise is at least 1; noise 0.5 rounds to nearest."""
    scale = scale_of(np.abs(values).max())
    relative = np.abs(values).astype(np.float64) / (scale or 1)
    kept = (relative + noise >= 1) & (scale > 0)
    return write_tern_grad(scale, pack_trits(trits_of(values < 0, kept)))


def decode_tern_grad(number: int, code: bytes) -> np.ndarray:
    require(len(code) == 4 + (number + 4) // 5, "value code length")
    scale = read_scale(code[:4])
    return scaled(unpack_trits(np.frombuffer(code[4:], np.uint8), number), scale)


TERN_GRAD = register(ValueCode(10, "TernGrad", encode_tern_grad, decode_tern_grad))
