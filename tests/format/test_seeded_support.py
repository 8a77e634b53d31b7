"""SeededSupport: what is drawn, and that no bytes are taken for it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from format import reference
from format.decoders import decode_with_ops
from format.reference.bits import pack_bits
from format.reference.float32 import FLOAT32
from format.reference.seeded_support import SEEDED_SUPPORT, seeded_support


@given(st.integers(1, 500), st.data())
def test_a_seeded_support_has_its_count_and_needs_no_bytes(size, data):
    count = data.draw(st.integers(0, size))
    indices = reference.decode_index(SEEDED_SUPPORT, size, count, b"", 1, 2, 3)
    assert len(indices) == count and (np.diff(indices) > 0).all() and (count == 0 or indices[-1] < size)
    assert reference.encode_index(SEEDED_SUPPORT, size, indices, 1, 2, 3) == b""


def test_draws_are_spread_evenly():
    hits = sum(np.bincount(seeded_support(20, 5, 9, step, 0), minlength=20) for step in range(4000))
    assert hits.sum() == 20000 and abs(hits - 1000).max() < 5 * np.sqrt(1000)


@given(
    st.lists(st.tuples(st.integers(1, 500), st.floats(0, 1)), min_size=1, max_size=4), st.integers(0, 2**32 - 1), st.integers(0, 2**63 - 1)
)
def test_ops_draw_the_same_seeded_supports(chosen, seed, step):
    sizes = [size for size, _ in chosen]
    rows = [(size, round(size * ratio), 1, b"", bytes(4 * round(size * ratio))) for size, ratio in chosen]
    frame = reference.write_frame(SEEDED_SUPPORT.id, FLOAT32.id, rows, seed, step)
    decoded = decode_with_ops(frame, sizes, [1] * len(sizes), SEEDED_SUPPORT, FLOAT32)
    for segment, (indices, _) in zip(reference.decode_frame(frame).segments, decoded, strict=True):
        np.testing.assert_array_equal(indices, segment.indices)


def test_refuses_a_code_that_is_not_empty(decoder):
    with decoder.refuses("index code length"):
        decoder.decode_index(SEEDED_SUPPORT, 100, 3, b"\0")


def test_refuses_raw_indices(decoder):
    for indices in (seeded_support(20, 4, 0, 0, 0), np.arange(4)):
        with decoder.refuses("index code length"):
            decoder.decode_index(SEEDED_SUPPORT, 20, 4, pack_bits(indices, 5))


def test_the_reference_codes_no_other_support_than_the_seeded_one():
    with pytest.raises(ValueError, match="seeded support"):
        reference.encode_index(SEEDED_SUPPORT, 20, np.arange(4))
