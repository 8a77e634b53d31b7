"""Huffman and DeltaHuffman: what no encoder writes, under both decoders of docs/format.md."""

import heapq

import format_reference as reference
import numpy as np
import pytest
from format_decoders import OPS, encode_index_with_ops
from format_reference import DELTA_HUFFMAN, DELTA_HUFFMAN_SYMBOLS, HUFFMAN, HUFFMAN_SYMBOLS, NO_WORD
from hypothesis import given, settings
from hypothesis import strategies as st

CODECS = [(HUFFMAN, HUFFMAN_SYMBOLS), (DELTA_HUFFMAN, DELTA_HUFFMAN_SYMBOLS)]
SIZE = 2**30
# As gaps each has symbols of both codecs that differ in their counts, and a code that raw indices would exceed.
GAPS = [3, 3, 3, 4, 5, 300, 3, 3, 70000, 6]
PLACES = (np.cumsum(np.array(GAPS) + 1) - 1).tolist()


def both(test):
    return pytest.mark.parametrize(("codec", "symbols"), CODECS, ids=["Huffman", "DeltaHuffman"])(test)


def lengths_of(gaps, symbols):
    chosen = reference.symbols_of(gaps, symbols)
    return reference.lengths_of_counts(np.bincount(chosen, minlength=len(symbols)).tolist())


# Lengths


@given(st.lists(st.integers(0, 2**20), min_size=1, max_size=40).filter(any))
def test_lengths_are_complete_and_of_least_total(counts):
    lengths = reference.lengths_of_counts(counts)
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
    lengths = reference.lengths_of_counts(counts)
    assert max(lengths) == 12 and sum(2.0**-length for length in lengths) == 1


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=30).filter(any))
def test_a_table_of_lengths_comes_back(counts):
    lengths = reference.lengths_of_counts(counts)
    cursor = reference.BitCursor(reference.pack_stream(reference.table_bits(lengths)), "length")
    assert reference.read_table(cursor, len(counts)) == lengths


# What no encoder writes


@both
def test_takes_the_gaps_of_the_test(decoder, codec, symbols):
    assert decoder.decode_index(codec, SIZE, len(GAPS), reference.write_gaps(GAPS, symbols)).tolist() == PLACES


@both
def test_refuses_gaps_that_end_early(decoder, codec, symbols):
    code = reference.write_gaps(GAPS, symbols)
    for length in range(4, len(code)):
        with decoder.refuses("index code length"):
            decoder.decode_index(codec, SIZE, len(GAPS), code[:length])


@both
def test_refuses_bytes_after_the_gaps(decoder, codec, symbols):
    with decoder.refuses("index code length"):
        decoder.decode_index(codec, SIZE, len(GAPS), reference.write_gaps(GAPS, symbols) + b"\0")


@both
def test_refuses_gaps_that_leave_the_size(decoder, codec, symbols):
    code = reference.write_gaps(GAPS, symbols)
    assert decoder.decode_index(codec, PLACES[-1] + 1, len(GAPS), code).tolist() == PLACES
    with decoder.refuses("index below size"):
        decoder.decode_index(codec, PLACES[-1], len(GAPS), code)


@both
def test_refuses_the_largest_gap_where_it_leaves_the_size(decoder, codec, symbols):
    bits = reference.table_bits([NO_WORD] * (len(symbols) - 1) + [0])
    with decoder.refuses("index below size"):
        decoder.decode_index(codec, 2**31 - 1, 4, reference.pack_stream(bits + [1] * (112 - len(bits))))


@both
def test_refuses_lengths_that_do_not_follow_from_the_counts(decoder, codec, symbols):
    lengths = lengths_of(GAPS, symbols)
    others = lengths.copy()
    first, second = sorted(s for s, length in enumerate(lengths) if length != NO_WORD)[:2]
    others[first], others[second] = others[second], others[first]
    assert others != lengths
    with decoder.refuses("lengths that follow from the counts"):
        decoder.decode_index(codec, SIZE, len(GAPS), reference.write_gaps(GAPS, symbols, others))


@both
def test_refuses_another_code_of_the_same_total(decoder, codec, symbols):
    """Two symbols of equal counts: the lower one has the longer word."""
    gaps = [0, 0, 300, 70000] if codec == DELTA_HUFFMAN else [0, 0, 1, 3]
    lengths = lengths_of(gaps, symbols)
    assert lengths[:3] == [1, 2, 2]
    extended = [0, 300, 70000, 70000] if codec == DELTA_HUFFMAN else [0, 1, 3, 3]
    assert lengths_of(extended, symbols)[:3] == [2, 2, 1]
    decoder.decode_index(codec, SIZE, 4, reference.write_gaps(gaps, symbols))
    with decoder.refuses("lengths that follow from the counts"):
        decoder.decode_index(codec, SIZE, 4, reference.write_gaps(gaps, symbols, lengths_of(extended, symbols)))


@both
def test_refuses_a_symbol_with_a_word_that_does_not_occur(decoder, codec, symbols):
    lengths = [NO_WORD, 1, 1] if codec == HUFFMAN else [1, 1]
    with decoder.refuses("lengths that follow from the counts"):
        decoder.decode_index(codec, SIZE, 4, reference.write_gaps([5] * 4, symbols, lengths))


@both
def test_refuses_more_words_than_fit(decoder, codec, symbols):
    code = reference.pack_stream(reference.table_bits([1, 2, 1]) + [0] * 20)
    with decoder.refuses("more words than fit"):
        decoder.decode_index(codec, SIZE, 3, code)


@both
def test_refuses_a_table_whose_words_are_missing(decoder, codec, symbols):
    code = reference.pack_stream(reference.table_bits([2] * 3 + [NO_WORD] * (len(symbols) - 3)) + [0] * 20)
    with decoder.refuses("words are missing"):
        decoder.decode_index(codec, SIZE, 8, code)


@both
def test_refuses_changes_of_a_length_above_14(decoder, codec, symbols):
    for number in (15, 16, 1000):
        with decoder.refuses("change of a length"):
            decoder.decode_index(codec, SIZE, 8, reference.write_gamma([number]) + bytes(3))


@both
def test_size_and_count_tell_whether_the_complement_is_coded(decoder, codec, symbols):
    code = reference.write_gaps([5, 5], symbols)
    assert decoder.decode_index(codec, 5000, 2, code).tolist() == [5, 11]
    assert decoder.decode_index(codec, 5000, 4998, code).tolist() == [place for place in range(5000) if place not in (5, 11)]


# Supports with gaps of every length, by both encoders


@settings(deadline=None)
@given(
    st.lists(st.integers(0, 30).flatmap(lambda bits: st.integers(0, 2**bits - 1)), min_size=1, max_size=40),
    st.sampled_from([HUFFMAN, DELTA_HUFFMAN]),
)
def test_ops_and_reference_code_gaps_of_every_length(gaps, codec):
    places = np.cumsum(np.array(gaps) + 1) - 1
    places = places[places < 2**31 - 2]
    if not len(places):
        return
    code = reference.encode_index(codec, 2**31 - 1, places)
    assert encode_index_with_ops(codec, 2**31 - 1, places).hex() == code.hex()
    np.testing.assert_array_equal(reference.decode_index(codec, 2**31 - 1, len(places), code), places)
    np.testing.assert_array_equal(OPS.decode_index(codec, 2**31 - 1, len(places), code), places)
