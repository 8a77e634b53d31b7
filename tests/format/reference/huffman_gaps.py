"""What Huffman and DeltaHuffman share: the gaps as symbols of a Huffman code, each followed by a field."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from format.reference.bits import BitCursor, field_bits, pack_stream, require
from format.reference.canonical_code import lengths_of_counts, read_symbol, read_table, table_bits, words_of
from format.reference.gaps import codes_complement, gaps_of, support_of

Symbols = list[tuple[int, int]]  # (smallest gap, bits of the field that tells which one) of each symbol


def symbols_of(gaps: Sequence[int], symbols: Symbols) -> list[int]:
    return [max(s for s, (smallest, _) in enumerate(symbols) if smallest <= gap) for gap in gaps]


def write_gaps(gaps: Sequence[int], symbols: Symbols, lengths: Sequence[int] | None = None) -> bytes:
    """The bytes for given gaps, under the code that follows from them or under any other."""
    chosen = symbols_of(gaps, symbols)
    if lengths is None:
        lengths = lengths_of_counts(np.bincount(chosen, minlength=len(symbols)).tolist())
    words = words_of(lengths)
    bits = table_bits(lengths)
    for gap, s in zip(gaps, chosen, strict=True):
        smallest, width = symbols[s]
        bits += [*words[s], *field_bits(gap - smallest, width)]
    return pack_stream(bits)


def encode_gaps(size: int, indices: np.ndarray, symbols: Symbols) -> bytes:
    return write_gaps(gaps_of(size, indices).tolist(), symbols)


def decode_gaps(size: int, count: int, code: bytes, symbols: Symbols) -> np.ndarray:
    cursor = BitCursor(code, "index code length")
    lengths = read_table(cursor, len(symbols))
    words = {word: s for s, word in words_of(lengths).items()}
    counts, gaps, index = [0] * len(symbols), [], -1
    for _ in range(size - count if codes_complement(size, count) else count):
        s = read_symbol(cursor, words)
        smallest, width = symbols[s]
        gaps.append(smallest + cursor.field(width))
        index += 1 + gaps[-1]
        require(index < size, "index below size")
        counts[s] += 1
    cursor.finish()
    require(lengths == lengths_of_counts(counts), "lengths that follow from the counts")
    return support_of(size, count, np.array(gaps))
