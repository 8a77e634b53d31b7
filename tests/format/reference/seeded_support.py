"""SeededSupport: no bytes, a support that both sides draw."""

from __future__ import annotations

import numpy as np

from format.reference.bits import require
from format.reference.index_codes import IndexCode, register
from format.reference.random_support import random_support, stream_key


def seeded_support(size: int, count: int, seed: int, step: int, segment: int) -> np.ndarray:
    return random_support(stream_key(seed, step, segment), size, count)


def encode_seeded_support(size: int, indices: np.ndarray, seed: int, step: int, segment: int) -> bytes:
    if not np.array_equal(indices, seeded_support(size, len(indices), seed, step, segment)):
        raise ValueError("only the seeded support can be coded under this codec")
    return b""


def decode_seeded_support(size: int, count: int, code: bytes, seed: int, step: int, segment: int) -> np.ndarray:
    require(code == b"", "index code length")
    return seeded_support(size, count, seed, step, segment)


SEEDED_SUPPORT = register(IndexCode(0, "SeededSupport", encode_seeded_support, decode_seeded_support, has_raw=False))
