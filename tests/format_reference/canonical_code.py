"""Huffman codes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from format_reference.bits import require

LONGEST_WORD = 12
NO_WORD = 13


class BitCursor:
    """Reads a code from its first bit on; going beyond its end, or not to its end, is the error `length`."""

    def __init__(self, code: bytes, length: str):
        self.bits = np.unpackbits(np.frombuffer(code, np.uint8), bitorder="little").tolist()
        self.length = length
        self.position = 0

    def field(self, width: int) -> int:
        require(self.position + width <= len(self.bits), self.length)
        self.position += width
        return sum(bit << k for k, bit in enumerate(self.bits[self.position - width : self.position]))

    def gamma(self, most: int, name: str) -> int:
        below = 0
        while self.field(1) == 0:
            below += 1
            require(1 << below <= most, name)
        number = 1 << below | self.field(below)
        require(number <= most, name)
        return number

    def symbol(self, words: dict[tuple[int, ...], int]) -> int:
        word: tuple[int, ...] = ()
        while word not in words:
            word += (self.field(1),)
        return words[word]

    def finish(self) -> None:
        require(len(self.bits) - self.position < 8, self.length)
        require(not any(self.bits[self.position :]), "unused bits")


def field_bits(field: int, width: int) -> list[int]:
    return [field >> k & 1 for k in range(width)]


def lengths_of_counts(counts: Sequence[int]) -> list[int]:
    """Package-merge. An item is its count, whether it is a pair, and the symbols in it."""
    symbols = [(count, False, (s,)) for s, count in sorted(enumerate(counts), key=lambda item: (item[1], item[0])) if count]
    items = symbols
    for _ in range(LONGEST_WORD - 1):
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
        below = number.bit_length() - 1
        bits += [0] * below + [1] + field_bits(number, below)
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
