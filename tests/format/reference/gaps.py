"""The gaps of a support or of its complement, which Rice, Huffman and DeltaHuffman code."""

from __future__ import annotations

import numpy as np


def complement_of(size: int, indices: np.ndarray) -> np.ndarray:
    """The indices that are not kept."""
    kept = np.ones(size, bool)
    kept[indices] = False
    return np.flatnonzero(kept)


def codes_complement(size: int, count: int) -> bool:
    return 2 * count > size


def gaps_of(size: int, indices: np.ndarray) -> np.ndarray:
    """The gaps that are coded."""
    coded = complement_of(size, indices) if codes_complement(size, len(indices)) else np.asarray(indices, np.int64)
    return np.diff(coded, prepend=-1) - 1


def support_of(size: int, count: int, gaps: np.ndarray) -> np.ndarray:
    """The support whose gaps, or those of its complement, are these."""
    coded = np.cumsum(np.asarray(gaps, np.int64) + 1) - 1
    return complement_of(size, coded) if codes_complement(size, count) else coded
