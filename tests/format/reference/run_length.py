"""RunLength: the lengths of the runs of absent and kept indices in gamma code."""

from __future__ import annotations

import numpy as np

from format.reference.bits import require, write_gamma
from format.reference.index_codes import IndexCode, register


def encode_run_length(size: int, indices: np.ndarray) -> bytes:
    kept = np.zeros(size, np.int64)
    kept[indices] = 1
    changes = np.flatnonzero(np.diff(kept, prepend=0))
    first, *others = np.diff(changes, prepend=0).tolist()
    return write_gamma([first + 1, *others])


def decode_run_length(size: int, count: int, code: bytes) -> np.ndarray:
    bits = np.unpackbits(np.frombuffer(code, np.uint8), bitorder="little").tolist()
    left = [size - count, count]
    indices: list[int] = []
    position, index, kept = 0, 0, 0
    while all(left):
        require(1 in bits[position:], "runs end early")
        one = bits.index(1, position)
        below = one - position
        position = one + 1 + below
        require(position <= len(bits), "runs end early")
        run = (1 << below) + sum(bit << k for k, bit in enumerate(bits[one + 1 : position])) - (index == 0 and not kept)
        require(run <= left[kept], "runs within the size and the count")
        if kept:
            indices += range(index, index + run)
        left[kept] -= run
        index += run
        kept = 1 - kept
    require(len(code) == (position + 7) // 8, "bytes after the runs")
    require(not any(bits[position:]), "unused bits")
    return np.array([*indices, *range(index, index + left[1])], np.int64)


RUN_LENGTH = register(IndexCode(5, "RunLength", encode_run_length, decode_run_length))
