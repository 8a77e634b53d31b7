"""Float32: always raw."""

from __future__ import annotations

import numpy as np

from format.reference.bits import FormatError
from format.reference.value_codes import ValueCode, raw_values, register


def decode_float32(number: int, code: bytes) -> np.ndarray:
    raise FormatError("value code length")


FLOAT32 = register(ValueCode(1, "Float32", raw_values, decode_float32))
