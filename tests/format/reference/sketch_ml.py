"""SketchML: bfloat16 means of buckets, and the bucket of each value in a Huffman code."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from format.reference.bits import BitCursor, field_bits, pack_stream, require
from format.reference.canonical_code import NO_WORD, lengths_of_counts, read_symbol, read_table, table_bits, words_of
from format.reference.value_codes import ValueCode, register

SMALLEST_MEAN, LARGEST_MEAN = 0x0080, 0x7F7F


def write_sketch_ml(
    means: Sequence[int],
    symbols: Sequence[int],
    zeros: bool = False,
    width: int | None = None,
    buckets: int | None = None,
    lengths: Sequence[int] | None = None,
) -> bytes:
    """The bytes for given means (as bits of bfloat16) and symbols; the others follow from these, or are such that no encoder writes."""
    fewer = np.diff(np.array(means, np.int64)) - 1
    if width is None:
        width = int(max(fewer, default=0)).bit_length()
    if lengths is None:
        lengths = lengths_of_counts(np.bincount(symbols, minlength=zeros + 2 * len(means)).tolist())
    bits = [*field_bits(len(means) if buckets is None else buckets, 9), int(zeros)]
    if len(means):
        bits += field_bits(means[0], 15) + field_bits(width, 4)
        bits += [bit for difference in fewer.tolist() for bit in field_bits(difference, width)]
    words = words_of(lengths)
    bits += table_bits(lengths)
    return pack_stream([*bits, *(bit for s in symbols for bit in words[s])])


def encode_sketch_ml(values: np.ndarray, bits: int = 4) -> bytes:
    """A bucket for each magnitude where these are few, else buckets of equal counts: which buckets an encoder makes is its own affair."""
    magnitudes = np.abs(values).astype(np.float64)
    present = magnitudes >= 2.0**-126
    zeros = not present.all()
    means = np.zeros(0, np.int64)
    symbols = np.zeros(len(values), np.int64)
    if present.any():
        parts = np.unique(magnitudes[present])[:, None]
        if len(parts) > 2**bits:
            parts = np.array_split(np.sort(magnitudes[present]), 2**bits)
        high = np.array([part.mean() for part in parts if len(part)], np.float32).view(np.uint32).astype(np.int64) + 0x8000 >> 16
        means = np.unique(np.clip(high, SMALLEST_MEAN, LARGEST_MEAN))
        numbers = (means << 16).astype(np.uint32).view(np.float32).astype(np.float64)
        nearest = np.abs(magnitudes[present, None] - numbers).argmin(1)
        named, nearest = np.unique(nearest, return_inverse=True)
        means = means[named]
        symbols[present] = zeros + 2 * nearest + np.signbit(values[present])
    return write_sketch_ml(means.tolist(), symbols.tolist(), zeros)


def decode_sketch_ml(number: int, code: bytes) -> np.ndarray:
    cursor = BitCursor(code, "value code length")
    buckets, zeros = cursor.field(9), cursor.field(1)
    require(buckets <= 256, "number of buckets")
    require(buckets > 0 or zeros == 1, "buckets or zeros")
    means = read_means(cursor, buckets) if buckets else []
    lengths = read_table(cursor, zeros + 2 * buckets)
    occurs = [length != NO_WORD for length in lengths]
    require(not zeros or occurs[0], "zeros in the segment")
    require(all(a or b for a, b in zip(occurs[zeros::2], occurs[zeros + 1 :: 2], strict=True)), "values in each bucket")
    words = {word: s for s, word in words_of(lengths).items()}
    symbols = np.array([read_symbol(cursor, words) for _ in range(number)], np.int64)
    cursor.finish()
    signed = [(mean | sign) << 16 for mean in means for sign in (0, 0x8000)]
    return np.array([0] * zeros + signed, np.uint32).view(np.float32)[symbols]


def read_means(cursor: BitCursor, buckets: int) -> list[int]:
    first, width = cursor.field(15), cursor.field(4)
    fewer = [cursor.field(width) for _ in range(buckets - 1)]
    means = np.cumsum([first, *(difference + 1 for difference in fewer)]).tolist()
    require(means[0] >= SMALLEST_MEAN and means[-1] <= LARGEST_MEAN, "mean from 2^-126 to the largest")
    require(width == max(fewer, default=0).bit_length(), "smallest width of the differences")
    return means


SKETCH_ML = register(ValueCode(9, "SketchML", encode_sketch_ml, decode_sketch_ml))
