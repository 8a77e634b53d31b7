"""FixedWidth: always raw."""

from __future__ import annotations

import numpy as np

from format.reference.bits import FormatError
from format.reference.index_codes import IndexCode, register, write_raw


def decode_fixed_width(size: int, count: int, code: bytes) -> np.ndarray:
    raise FormatError("index code length")


FIXED_WIDTH = register(IndexCode(1, "FixedWidth", write_raw, decode_fixed_width))
