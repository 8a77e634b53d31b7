"""Index codes Huffman and DeltaHuffman."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from format_reference.bits import pack_stream, places_left_out, require
from format_reference.canonical_code import BitCursor, field_bits, lengths_of_counts, read_table, table_bits, words_of

# (lowest gap, bits that tell which one) of each symbol
HUFFMAN_SYMBOLS = [(2**c - 1, c) for c in range(31)]
DELTA_HUFFMAN_SYMBOLS = [(0, 8), (256, 16), (256 + 256**2, 24), (256 + 256**2 + 256**3, 32)]


def symbols_of(gaps: Sequence[int], symbols: list[tuple[int, int]]) -> list[int]:
    return [max(s for s, (lowest, _) in enumerate(symbols) if lowest <= gap) for gap in gaps]


def write_gaps(gaps: Sequence[int], symbols: list[tuple[int, int]], lengths: Sequence[int] | None = None) -> bytes:
    """The bytes for given gaps, under the code that follows from them or under any other."""
    chosen = symbols_of(gaps, symbols)
    if lengths is None:
        lengths = lengths_of_counts(np.bincount(chosen, minlength=len(symbols)).tolist())
    words = words_of(lengths)
    bits = table_bits(lengths)
    for gap, s in zip(gaps, chosen, strict=True):
        lowest, width = symbols[s]
        bits += [*words[s], *field_bits(gap - lowest, width)]
    return pack_stream(bits)


def encode_gaps(size: int, indices: np.ndarray, symbols: list[tuple[int, int]]) -> bytes:
    places = places_left_out(size, indices) if 2 * len(indices) > size else np.asarray(indices, np.int64)
    return write_gaps((np.diff(places, prepend=-1) - 1).tolist(), symbols)


def decode_gaps(size: int, count: int, code: bytes, symbols: list[tuple[int, int]]) -> np.ndarray:
    complement = 2 * count > size
    cursor = BitCursor(code, "index code length")
    lengths = read_table(cursor, len(symbols))
    words = {word: s for s, word in words_of(lengths).items()}
    counts, places, place = [0] * len(symbols), [], -1
    for _ in range(size - count if complement else count):
        s = cursor.symbol(words)
        lowest, width = symbols[s]
        place += 1 + lowest + cursor.field(width)
        require(place < size, "index below size")
        counts[s] += 1
        places.append(place)
    cursor.finish()
    require(lengths == lengths_of_counts(counts), "lengths that follow from the counts")
    return places_left_out(size, np.array(places)) if complement else np.array(places, np.int64)


def encode_huffman(size: int, indices: np.ndarray) -> bytes:
    return encode_gaps(size, indices, HUFFMAN_SYMBOLS)


def decode_huffman(size: int, count: int, code: bytes) -> np.ndarray:
    return decode_gaps(size, count, code, HUFFMAN_SYMBOLS)


def encode_delta_huffman(size: int, indices: np.ndarray) -> bytes:
    return encode_gaps(size, indices, DELTA_HUFFMAN_SYMBOLS)


def decode_delta_huffman(size: int, count: int, code: bytes) -> np.ndarray:
    return decode_gaps(size, count, code, DELTA_HUFFMAN_SYMBOLS)
