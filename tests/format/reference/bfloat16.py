"""BFloat16: the high half of a float32."""

from __future__ import annotations

import numpy as np

from format.reference.bits import require
from format.reference.value_codes import ValueCode, raw_values, register


def encode_bfloat16(values: np.ndarray) -> bytes:
    bits = values.view(np.uint32).astype(np.uint64)
    high = ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype("<u2")
    overflows = ((high & 0x7F80) == 0x7F80).any()
    return raw_values(values) if overflows else high.tobytes()


def decode_bfloat16(number: int, code: bytes) -> np.ndarray:
    require(len(code) == 2 * number, "value code length")
    return (np.frombuffer(code, "<u2").astype(np.uint32) << 16).view(np.float32)


BFLOAT16 = register(ValueCode(3, "BFloat16", encode_bfloat16, decode_bfloat16))
