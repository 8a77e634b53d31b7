"""Draws, and the supports that both sides draw from a key."""

from __future__ import annotations

import numpy as np

from format.reference.gaps import complement_of

MASK64 = 2**64 - 1
GOLDEN = 0x9E3779B97F4A7C15


def mix(z: int) -> int:
    z ^= z >> 30
    z = z * 0xBF58476D1CE4E5B9 & MASK64
    z ^= z >> 27
    z = z * 0x94D049BB133111EB & MASK64
    return z ^ z >> 31


def stream_key(seed: int, step: int, segment: int) -> int:
    key = mix((seed + GOLDEN) & MASK64)
    key = mix((key + step * GOLDEN) & MASK64)
    return mix((key + segment * GOLDEN) & MASK64)


def draw(key: int, j: int) -> int:
    return mix((key + (j + 1) * GOLDEN) & MASK64)


def random_support(key: int, size: int, count: int) -> np.ndarray:
    drawn: set[int] = set()
    j = 0
    while len(drawn) < min(count, size - count):
        drawn.add(draw(key, j) * size >> 64)
        j += 1
    indices = np.array(sorted(drawn), np.int64)
    return indices if 2 * count <= size else complement_of(size, indices)
