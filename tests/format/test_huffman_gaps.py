"""Huffman and DeltaHuffman: bytes that no encoder writes, and gaps of every length."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from format import reference
from format.decoders import OPS, check_refuses_raw, encode_index_with_ops
from format.reference.bits import pack_stream, write_gamma
from format.reference.canonical_code import NO_WORD, lengths_of_counts, table_bits
from format.reference.delta_huffman import DELTA_HUFFMAN, DELTA_HUFFMAN_SYMBOLS
from format.reference.huffman import HUFFMAN, HUFFMAN_SYMBOLS
from format.reference.huffman_gaps import symbols_of, write_gaps

CODECS = [(HUFFMAN, HUFFMAN_SYMBOLS), (DELTA_HUFFMAN, DELTA_HUFFMAN_SYMBOLS)]
SIZE = 2**30
# As gaps each has symbols of both codecs that differ in their counts, and a code that raw indices would exceed.
GAPS = [3, 3, 3, 4, 5, 300, 3, 3, 70000, 6]
INDICES = (np.cumsum(np.array(GAPS) + 1) - 1).tolist()


def both(test):
    return pytest.mark.parametrize(("codec", "symbols"), CODECS, ids=["Huffman", "DeltaHuffman"])(test)


def lengths_of(gaps, symbols):
    chosen = symbols_of(gaps, symbols)
    return lengths_of_counts(np.bincount(chosen, minlength=len(symbols)).tolist())


@pytest.mark.parametrize("codec", [HUFFMAN, DELTA_HUFFMAN])
def test_refuses_an_empty_code(decoder, codec):
    with decoder.refuses("index code length"):
        decoder.decode_index(codec, 100, 3, b"")


@pytest.mark.parametrize(
    ("codec", "size", "count", "code"), [(HUFFMAN, 40, 37, b"\x13\x46\xa4\x15"), (DELTA_HUFFMAN, 5000, 2, b"\x2a\x28\x80")]
)
def test_refuses_unused_bits_that_are_set(decoder, codec, size, count, code):
    with decoder.refuses("unused bits"):
        decoder.decode_index(codec, size, count, code)


@pytest.mark.parametrize(("codec", "indices"), [(HUFFMAN, [0, 1, 2, 3, 4]), (DELTA_HUFFMAN, [*range(7), *range(8, 20)])])
def test_refuses_raw_indices_where_the_gaps_are_shorter(decoder, codec, indices):
    check_refuses_raw(decoder, codec, 20, indices)


@both
def test_takes_the_gaps_of_the_test(decoder, codec, symbols):
    assert decoder.decode_index(codec, SIZE, len(GAPS), write_gaps(GAPS, symbols)).tolist() == INDICES


@both
def test_refuses_gaps_that_end_early(decoder, codec, symbols):
    code = write_gaps(GAPS, symbols)
    for length in range(4, len(code)):
        with decoder.refuses("index code length"):
            decoder.decode_index(codec, SIZE, len(GAPS), code[:length])


@both
def test_refuses_bytes_after_the_gaps(decoder, codec, symbols):
    with decoder.refuses("index code length"):
        decoder.decode_index(codec, SIZE, len(GAPS), write_gaps(GAPS, symbols) + b"\0")


@both
def test_refuses_gaps_that_leave_the_size(decoder, codec, symbols):
    code = write_gaps(GAPS, symbols)
    assert decoder.decode_index(codec, INDICES[-1] + 1, len(GAPS), code).tolist() == INDICES
    with decoder.refuses("index below size"):
        decoder.decode_index(codec, INDICES[-1], len(GAPS), code)


@both
def test_refuses_the_largest_gap_where_it_leaves_the_size(decoder, codec, symbols):
    bits = table_bits([NO_WORD] * (len(symbols) - 1) + [0])
    with decoder.refuses("index below size"):
        decoder.decode_index(codec, 2**31 - 1, 4, pack_stream(bits + [1] * (112 - len(bits))))


@both
def test_refuses_lengths_that_do_not_follow_from_the_counts(decoder, codec, symbols):
    lengths = lengths_of(GAPS, symbols)
    others = lengths.copy()
    first, second = sorted(s for s, length in enumerate(lengths) if length != NO_WORD)[:2]
    others[first], others[second] = others[second], others[first]
    assert others != lengths
    with decoder.refuses("lengths that follow from the counts"):
        decoder.decode_index(codec, SIZE, len(GAPS), write_gaps(GAPS, symbols, others))


@both
def test_refuses_another_code_of_the_same_total(decoder, codec, symbols):
    """Two symbols of equal counts: the lower one has the longer word."""
    gaps = [0, 0, 300, 70000] if codec is DELTA_HUFFMAN else [0, 0, 1, 3]
    lengths = lengths_of(gaps, symbols)
    assert lengths[:3] == [1, 2, 2]
    extended = [0, 300, 70000, 70000] if codec is DELTA_HUFFMAN else [0, 1, 3, 3]
    assert lengths_of(extended, symbols)[:3] == [2, 2, 1]
    decoder.decode_index(codec, SIZE, 4, write_gaps(gaps, symbols))
    with decoder.refuses("lengths that follow from the counts"):
        decoder.decode_index(codec, SIZE, 4, write_gaps(gaps, symbols, lengths_of(extended, symbols)))


@both
def test_refuses_a_symbol_with_a_word_that_does_not_occur(decoder, codec, symbols):
    lengths = [NO_WORD, 1, 1] if codec is HUFFMAN else [1, 1]
    with decoder.refuses("lengths that follow from the counts"):
        decoder.decode_index(codec, SIZE, 4, write_gaps([5] * 4, symbols, lengths))


@both
def test_refuses_more_words_than_fit(decoder, codec, symbols):
    code = pack_stream(table_bits([1, 2, 1]) + [0] * 20)
    with decoder.refuses("more words than fit"):
        decoder.decode_index(codec, SIZE, 3, code)


@both
def test_refuses_a_table_whose_words_are_missing(decoder, codec, symbols):
    code = pack_stream(table_bits([2] * 3 + [NO_WORD] * (len(symbols) - 3)) + [0] * 20)
    with decoder.refuses("words are missing"):
        decoder.decode_index(codec, SIZE, 8, code)


@both
def test_refuses_changes_of_a_length_above_14(decoder, codec, symbols):
    for number in (15, 16, 1000):
        with decoder.refuses("change of a length"):
            decoder.decode_index(codec, SIZE, 8, write_gamma([number]) + bytes(3))


@both
def test_size_and_count_tell_whether_the_complement_is_coded(decoder, codec, symbols):
    code = write_gaps([5, 5], symbols)
    assert decoder.decode_index(codec, 5000, 2, code).tolist() == [5, 11]
    assert decoder.decode_index(codec, 5000, 4998, code).tolist() == [index for index in range(5000) if index not in (5, 11)]


@given(
    st.lists(st.integers(0, 30).flatmap(lambda bits: st.integers(0, 2**bits - 1)), min_size=1, max_size=40),
    st.sampled_from([HUFFMAN, DELTA_HUFFMAN]),
)
def test_ops_and_reference_code_gaps_of_every_length(gaps, codec):
    indices = np.cumsum(np.array(gaps) + 1) - 1
    indices = indices[indices < 2**31 - 2]
    if not len(indices):
        return
    code = reference.encode_index(codec, 2**31 - 1, indices)
    assert encode_index_with_ops(codec, 2**31 - 1, indices).hex() == code.hex()
    np.testing.assert_array_equal(reference.decode_index(codec, 2**31 - 1, len(indices), code), indices)
    np.testing.assert_array_equal(OPS.decode_index(codec, 2**31 - 1, len(indices), code), indices)
