"""Float16: IEEE binary16."""

from __future__ import annotations

import numpy as np

from format.reference.bits import require
from format.reference.value_codes import ValueCode, raw_values, register


def encode_float16(values: np.ndarray) -> bytes:
    with np.errstate(over="ignore"):
        halves = values.astype("<f2")
    return halves.tobytes() if np.isfinite(halves).all() else raw_values(values)


def decode_float16(number: int, code: bytes) -> np.ndarray:
    require(len(code) == 2 * number, "value code length")
    return np.frombuffer(code, "<f2").astype(np.float32)


FLOAT16 = register(ValueCode(2, "Float16", encode_float16, decode_float16))
