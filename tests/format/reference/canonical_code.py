"""Huffman codes: their lengths, words and tables."""

from __future__ import annotations

from collections.abc import Sequence

from format.reference.bits import BitCursor, field_bits, gamma_bits, require

MAX_LENGTH = 12
NO_WORD = 13


def lengths_of_counts(counts: Sequence[int]) -> list[int]:
    """Package-merge. An item is its count, whether it is a pair, and the symbols in it."""
    symbols = [(count, False, (s,)) for s, count in sorted(enumerate(counts), key=lambda item: (item[1], item[0])) if count]
    items = symbols
    for _ in range(MAX_LENGTH - 1):
        pairs = [(a[0] + b[0], True, a[2] + b[2]) for a, b in zip(items[::2], items[1::2], strict=False)]
        items = sorted(symbols + pairs, key=lambda item: item[:2])
    lengths = [0 if count else NO_WORD for count in counts]
    for _, _, taken in items[: 2 * len(symbols) - 2]:
        for s in taken:
            lengths[s] += 1
    return lengths


def words_of(lengths: Sequence[int]) -> dict[int, tuple[int, ...]]:
    """The bits of the word of each symbol that occurs, in the order in which they are written."""
    words, word, before = {}, -1, 0
    for length, s in sorted((length, s) for s, length in enumerate(lengths) if length != NO_WORD):
        word = (word + 1) << (length - before)
        before = length
        words[s] = tuple(field_bits(word, length)[::-1])
    return words


def table_bits(lengths: Sequence[int]) -> list[int]:
    """The bits for given lengths, also such that no encoder writes: up to where they are complete, if anywhere."""
    bits: list[int] = []
    total, before = 0.0, NO_WORD
    for length in lengths:
        if total == 1:
            break
        change = (length - before) % 14
        number = 1 if change == 0 else 2 * change if change <= 7 else 2 * (14 - change) + 1
        bits += gamma_bits(number)
        total += 0 if length == NO_WORD else 2.0**-length
        before = length
    return bits


def read_table(cursor: BitCursor, symbols: int) -> list[int]:
    lengths: list[int] = []
    total, before = 0.0, NO_WORD
    while len(lengths) < symbols and total < 1:
        number = cursor.gamma(14, "change of a length")
        before = (before + (number // 2 if number % 2 == 0 else -(number // 2))) % 14
        total += 0 if before == NO_WORD else 2.0**-before
        lengths.append(before)
    require(total <= 1, "more words than fit")
    require(total == 1, "words are missing")
    return lengths + [NO_WORD] * (symbols - len(lengths))


def read_symbol(cursor: BitCursor, words: dict[tuple[int, ...], int]) -> int:
    word: tuple[int, ...] = ()
    while word not in words:
        word += (cursor.bit(),)
    return words[word]
