"""Supports and values that codecs are tried on."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

float32s = st.floats(width=32, allow_nan=False, allow_infinity=False)
values_arrays = st.lists(float32s, max_size=80).map(lambda numbers: np.array(numbers, np.float32))


@st.composite
def supports(draw) -> tuple[int, np.ndarray]:
    """A size, and the kept indices."""
    size = draw(st.integers(0, 300))
    kept = draw(st.sets(st.integers(0, size - 1))) if size else set()
    if draw(st.booleans()):
        kept = set(range(size)) - kept
    return size, np.array(sorted(kept), np.int64)


def spread(seed: int, number: int, zeros: float) -> np.ndarray:
    """Normally distributed values, of which some are zeros."""
    random = np.random.default_rng(seed)
    return (random.standard_normal(number) * (random.random(number) >= zeros)).astype(np.float32)


spread_arrays = st.builds(spread, st.integers(0, 2**31), st.integers(1, 3000), st.sampled_from([0, 0.3, 0.99]))


def same_bits(a: np.ndarray, b: np.ndarray) -> bool:
    return a.dtype == b.dtype == np.float32 and np.array_equal(a.view(np.uint32), b.view(np.uint32))
