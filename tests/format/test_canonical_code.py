"""Huffman codes: their lengths, and the table of these."""

from __future__ import annotations

import heapq

from hypothesis import given
from hypothesis import strategies as st

from format.reference.bits import BitCursor, pack_stream
from format.reference.canonical_code import NO_WORD, lengths_of_counts, read_table, table_bits


@given(st.lists(st.integers(0, 2**20), min_size=1, max_size=40).filter(any))
def test_lengths_are_complete_and_of_least_total(counts):
    lengths = lengths_of_counts(counts)
    assert [length == NO_WORD for length in lengths] == [count == 0 for count in counts]
    assert sum(2.0**-length for length in lengths if length != NO_WORD) == 1
    heap = sorted(count for count in counts if count)
    total = 0
    while len(heap) > 1:
        heapq.heappush(heap, joined := heapq.heappop(heap) + heapq.heappop(heap))
        total += joined
    limited = sum(length * count for length, count in zip(lengths, counts, strict=True))
    assert limited >= total and (limited == total or max(lengths) == 12 or NO_WORD in lengths)


def test_lengths_stay_at_12_where_counts_grow_like_fibonaccis():
    counts = [1, 1]
    while len(counts) < 30:
        counts.append(counts[-1] + counts[-2])
    lengths = lengths_of_counts(counts)
    assert max(lengths) == 12 and sum(2.0**-length for length in lengths) == 1


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=30).filter(any))
def test_a_table_of_lengths_comes_back(counts):
    lengths = lengths_of_counts(counts)
    cursor = BitCursor(pack_stream(table_bits(lengths)), "length")
    assert read_table(cursor, len(counts)) == lengths
