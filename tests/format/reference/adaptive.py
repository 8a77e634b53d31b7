"""Adaptive: a tree in a range code whose probabilities follow rows and columns, or Rice's form."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count as numbers_from

import numpy as np

from format.reference.bits import read_leb128, require, write_leb128
from format.reference.index_codes import IndexCode, register
from format.reference.rice import decode_rice, encode_rice

WHOLE = 2**32
Ask = Callable[[int, int, int], bool]  # (probability of a yes, first index, end of the indices)


def has_structure(size: int, count: int, rows: int, columns: int) -> bool:
    if columns < 2 or rows < 1 or size % (columns * rows):
        return False
    lines = size // columns
    return 2 <= lines <= 64 * count and columns <= 64 * count


def log2_in_sixteenths(x: int) -> int:
    high = x.bit_length() - 1
    return 16 * high + ((x << 4 >> high) & 15)


class Probabilities:
    def __init__(self):
        self.p = [2**28 * 2**k // (2**k + 1) if k >= 0 else 2**28 // (2**-k + 1) for k in range(-14, 15)]
        self.n = [12] * 29

    def answer(self, odds: int, ask: Ask, begin: int, end: int) -> bool:
        k = min(max((odds + 8) // 16, -14), 14) + 14
        yes = ask(self.p[k] >> 12 | 1, begin, end)
        rate = 2**17 // (2 * self.n[k] + 3)
        self.p[k] += (2**28 - self.p[k]) * rate >> 16 if yes else -(self.p[k] * rate >> 16)
        self.n[k] = min(self.n[k] + 1, 255)
        return yes


class Tree:
    """The walk that both directions take; `ask` writes or reads an answer."""

    def __init__(self, size: int, count: int, rows: int, columns: int, ask: Ask):
        self.shaped = has_structure(size, count, rows, columns)
        self.rows, self.columns = (rows, columns) if self.shaped else (1, size)
        self.lines = size // self.columns
        self.ask = ask
        self.left = count
        self.density = count * WHOLE // size
        self.top = next(level for level in numbers_from() if count << level + 2 > size or 1 << level >= self.columns)
        self.tops, self.lefts, self.rights = Probabilities(), Probabilities(), Probabilities()
        self.seen = [[0] * ((self.columns >> level) + 1) for level in range(self.top + 1)] if self.shaped else []
        self.kept, self.awaited = [0] * self.rows, [0] * self.rows
        self.indices: list[int] = []

    def walk(self) -> np.ndarray:
        for line in range(self.lines):
            self.base, self.row, done = line * self.columns, line % self.rows, len(self.indices)
            self.scale = [(self.density << level) // ((16 * done << level) // self.columns + 24) for level in range(self.top + 1)]
            for node in range((self.columns - 1 >> self.top) + 1):
                if self.left == 0:
                    return np.array(self.indices, np.int64)
                self.visit_top(node)
        require(self.left == 0, "kept elements of the tree")
        return np.array(self.indices, np.int64)

    def visit_top(self, node: int) -> None:
        if self.shaped:
            self.activity = min((16 * self.kept[self.row] + 24 << 16) // ((self.awaited[self.row] >> 12) + 24), 2**22)
            self.awaited[self.row] += self.column(self.top, node) >> 16
        odds = log2_in_sixteenths(self.expected(self.top, node)) - 512
        if self.tops.answer(odds, self.ask, *self.span(self.top, node)):
            self.left -= 1
            before = len(self.indices)
            self.open(self.top, node)
            self.kept[self.row] += len(self.indices) - before

    def open(self, level: int, node: int) -> None:
        if self.shaped:
            self.seen[level][node] += 1
        if level == 0:
            self.indices.append(self.base + node)
            return
        level, left, right = level - 1, 2 * node, 2 * node + 1
        if right << level >= self.columns:
            self.open(level, left)
            return
        a, b = self.expected(level, left), self.expected(level, right)
        odds = log2_in_sixteenths(a) + log2_in_sixteenths(WHOLE + a + b) - log2_in_sixteenths(b) - 512
        in_left = self.lefts.answer(odds, self.ask, *self.span(level, left))
        in_right = not in_left or (self.left > 0 and self.rights.answer(log2_in_sixteenths(b) - 512, self.ask, *self.span(level, right)))
        self.left -= in_left and in_right
        if in_left:
            self.open(level, left)
        if in_right:
            self.open(level, right)

    def span(self, level: int, node: int) -> tuple[int, int]:
        return self.base + (node << level), self.base + min(node + 1 << level, self.columns)

    def column(self, level: int, node: int) -> int:
        return min((16 * self.seen[level][node] + 24) * self.scale[level], 2**40)

    def expected(self, level: int, node: int) -> int:
        if not self.shaped:
            return self.density << level | 1
        return (self.column(level, node) >> 8) * self.activity >> 8 | 1


class Interval:
    """[low, low + range) of the numbers below 1, exactly: in units of 256^-digits."""

    def __init__(self):
        self.low, self.range, self.digits = 0, WHOLE - 1, 4

    def narrow(self, yes: bool, part: int) -> None:
        self.low, self.range = (self.low, part) if yes else (self.low + part, self.range - part)
        while self.range < 2**24:
            self.low, self.range, self.digits = self.low << 8, self.range << 8, self.digits + 1

    def code(self) -> bytes:
        """The smallest number that is not below `low` with one digit more than there were shifts."""
        return (-(-self.low >> 24)).to_bytes(self.digits - 3, "big")


def encode_tree(size: int, indices: np.ndarray, rows: int = 1, columns: int = 1) -> bytes:
    interval = Interval()

    def ask(probability: int, begin: int, end: int) -> bool:
        first, last = np.searchsorted(indices, [begin, end])
        interval.narrow(first < last, (interval.range >> 16) * probability)
        return bool(first < last)

    tree = Tree(size, len(indices), rows, columns, ask)
    tree.walk()
    return (b"\x81" + write_leb128(rows) + write_leb128(columns) if tree.shaped else b"\x80") + interval.code()


def decode_tree(size: int, count: int, code: bytes) -> np.ndarray:
    require(code[0] in (0x80, 0x81), "first byte of the tree")
    rows, columns, start = 1, 1, 1
    if code[0] == 0x81:
        rows, start = read_leb128(code, start, "rows and columns cut off")
        columns, start = read_leb128(code, start, "rows and columns cut off")
        require(has_structure(size, count, rows, columns), "rows and columns")
    digits, interval = code[start:], Interval()
    number = int.from_bytes(digits[:4].ljust(4, b"\0"), "big")
    require(number < interval.range, "number of the range code")

    def ask(probability: int, begin: int, end: int) -> bool:
        nonlocal number
        part = (interval.range >> 16) * probability
        yes = number < interval.low + part
        read = interval.digits
        interval.narrow(yes, part)
        for digit in range(read, interval.digits):
            number = number << 8 | (digits[digit] if digit < len(digits) else 0)
        return yes

    indices = Tree(size, count, rows, columns, ask).walk()
    require(interval.code() == digits, "number of the range code")
    return indices


def encode_adaptive(size: int, indices: np.ndarray, rows: int = 1, columns: int = 1) -> bytes:
    """The shorter form; Rice's, which here is raw where that is not longer, when they are equal."""
    return min(encode_rice(size, indices), encode_tree(size, indices, rows, columns), key=len)


def decode_adaptive(size: int, count: int, code: bytes) -> np.ndarray:
    require(len(code) >= 1, "index code length")
    if code[0] < 0x80:
        return decode_rice(size, count, code)
    indices = decode_tree(size, count, code)
    require(len(code) < len(encode_rice(size, indices)), "tree only where Rice's form is not as short")
    return indices


ADAPTIVE = register(IndexCode(9, "Adaptive", encode_adaptive, decode_adaptive, encode_without_shape=encode_rice))
