"""Index codes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from format_reference.adaptive import decode_tree, encode_tree
from format_reference.bits import (
    index_width,
    pack_bits,
    pack_stream,
    packed_length,
    places_left_out,
    random_support,
    raw_index_length,
    require,
    stream_key,
    unpack_bits,
)
from format_reference.bloom_filter import BLOOM_FILTER, decode_bloom_filter
from format_reference.huffman_gaps import decode_delta_huffman, decode_huffman, encode_delta_huffman, encode_huffman

SEEDED, FIXED_WIDTH, BITMAP, RICE, ELIAS_FANO, RUN_LENGTH, HUFFMAN, DELTA_HUFFMAN = range(8)
ADAPTIVE = 9
APPLICATION = 255
INDEX_CODECS = (SEEDED, FIXED_WIDTH, BITMAP, RICE, ELIAS_FANO, RUN_LENGTH, HUFFMAN, DELTA_HUFFMAN, BLOOM_FILTER, ADAPTIVE, APPLICATION)


def encode_index(
    codec: int, size: int, indices: np.ndarray, seed: int = 0, step: int = 0, segment: int = 0, rows: int = 1, columns: int = 1
) -> bytes:
    """The one code of a support under a lossless codec: its own form where that is shorter, otherwise raw; `rows`, `columns`: Adaptive."""
    indices = np.asarray(indices, np.int64)
    count = len(indices)
    if count in (0, size):
        return b""
    if codec == SEEDED:
        if not np.array_equal(indices, seeded_support(size, count, seed, step, segment)):
            raise ValueError("only the seeded support can be coded under this codec")
        return b""
    raw = pack_bits(indices, index_width(size))
    encoders = {
        BITMAP: encode_bitmap,
        RICE: encode_rice,
        ELIAS_FANO: encode_elias_fano,
        RUN_LENGTH: encode_run_length,
        HUFFMAN: encode_huffman,
        DELTA_HUFFMAN: encode_delta_huffman,
        ADAPTIVE: partial(encode_adaptive, rows=rows, columns=columns),
    }
    coded = encoders[codec](size, indices) if codec in encoders else raw
    return coded if len(coded) < len(raw) else raw


def decode_index(codec: int, size: int, count: int, code: bytes, seed: int = 0, step: int = 0, segment: int = 0) -> np.ndarray:
    """The support, int64[count], ascending."""
    if count in (0, size):
        require(code == b"", "index code length")
        return np.arange(count, dtype=np.int64)
    if codec == SEEDED:
        require(code == b"", "index code length")
        return seeded_support(size, count, seed, step, segment)
    if codec == BLOOM_FILTER:
        return decode_bloom_filter(size, count, code, seed, step, segment)
    raw_length = raw_index_length(size, count)
    require(len(code) <= raw_length, "index code length")
    if len(code) == raw_length:
        indices = unpack_bits(code, count, index_width(size))
        require(bool((np.diff(indices) > 0).all()), "ascending indices")
        require(int(indices[-1]) < size, "index below size")
        require(encode_index(RICE if codec == ADAPTIVE else codec, size, indices) == code, "raw only where the coded form is not shorter")
        return indices
    require(codec != FIXED_WIDTH, "index code length")
    decoders = {
        BITMAP: decode_bitmap,
        RICE: decode_rice,
        ELIAS_FANO: decode_elias_fano,
        RUN_LENGTH: decode_run_length,
        HUFFMAN: decode_huffman,
        DELTA_HUFFMAN: decode_delta_huffman,
        ADAPTIVE: decode_adaptive,
    }
    return decoders[codec](size, count, code)


def encode_bitmap(size: int, indices: np.ndarray) -> bytes:
    kept = np.zeros(size, np.uint8)
    kept[indices] = 1
    return np.packbits(kept, bitorder="little").tobytes()


def decode_bitmap(size: int, count: int, code: bytes) -> np.ndarray:
    require(len(code) == packed_length(size, 1), "index code length")
    indices = np.flatnonzero(unpack_bits(code, size, 1))
    require(len(indices) == count, "bits set in the bitmap")
    return indices


def rice_bits(gaps: np.ndarray, parameter: int) -> int:
    return int((gaps >> parameter).sum()) + len(gaps) * (1 + parameter)


def best_rice_parameter(gaps: np.ndarray) -> int:
    return min(range(31), key=lambda parameter: (rice_bits(gaps, parameter), parameter))


def write_rice(gaps: np.ndarray, parameter: int, complement: bool) -> bytes:
    """The bytes for given gaps and any parameter, also one that no encoder chooses."""
    bits: list[int] = []
    for gap in gaps.tolist():
        bits += [0] * (gap >> parameter) + [1] + [gap >> k & 1 for k in range(parameter)]
    return bytes([parameter | complement << 6]) + pack_stream(bits)


def encode_rice(size: int, indices: np.ndarray) -> bytes:
    complement = 2 * len(indices) > size
    places = places_left_out(size, indices) if complement else np.asarray(indices, np.int64)
    gaps = np.diff(places, prepend=-1) - 1
    parameter = best_rice_parameter(gaps)
    if 1 + (rice_bits(gaps, parameter) + 7) // 8 >= raw_index_length(size, len(indices)):
        return pack_bits(indices, index_width(size))
    return write_rice(gaps, parameter, complement)


def decode_rice(size: int, count: int, code: bytes) -> np.ndarray:
    require(len(code) >= 1, "index code length")
    parameter, complement = code[0] & 0x3F, bool(code[0] & 0x40)
    require(not code[0] & 0x80, "reserved bits")
    require(parameter <= 30, "rice parameter")
    require(complement == (2 * count > size), "rice complement")
    number = size - count if complement else count
    bits = np.unpackbits(np.frombuffer(code, np.uint8, offset=1), bitorder="little").astype(np.int64)
    ones = np.flatnonzero(bits)
    gaps = np.zeros(number, np.int64)
    position, place = 0, -1
    for j in range(number):
        following = np.searchsorted(ones, position)
        require(following < len(ones), "rice gaps end early")
        stop = int(ones[following]) + 1
        require(stop + parameter <= len(bits), "rice gaps end early")
        gaps[j] = (stop - 1 - position) << parameter | int(bits[stop : stop + parameter] @ (1 << np.arange(parameter, dtype=np.int64)))
        position = stop + parameter
        place += int(gaps[j]) + 1
        require(place < size, "index below size")
    require(len(code) == 1 + (position + 7) // 8, "bytes after the rice gaps")
    require(not bits[position:].any(), "unused bits")
    require(parameter == best_rice_parameter(gaps), "best rice parameter")
    places = np.cumsum(gaps + 1) - 1
    return places_left_out(size, places) if complement else places


def elias_fano_layout(size: int, count: int) -> tuple[int, int]:
    """Low bits of each place, and bits of the unary part."""
    low = max(k for k in range(31) if count << k <= size)
    return low, count + (size - 1 >> low)


def write_elias_fano(unary: np.ndarray, places: np.ndarray, low: int) -> bytes:
    """The bytes for any unary part and the low bits of any places."""
    return pack_stream(np.concatenate([unary, ((places[:, None] >> np.arange(low)) & 1).ravel()]))


def encode_elias_fano(size: int, indices: np.ndarray) -> bytes:
    low, length = elias_fano_layout(size, len(indices))
    unary = np.zeros(length, np.int64)
    unary[(indices >> low) + np.arange(len(indices))] = 1
    return write_elias_fano(unary, indices, low)


def decode_elias_fano(size: int, count: int, code: bytes) -> np.ndarray:
    low, length = elias_fano_layout(size, count)
    bits_of_all = length + count * low
    require(len(code) == packed_length(bits_of_all, 1), "index code length")
    bits = unpack_bits(code, bits_of_all, 1)
    ones = np.flatnonzero(bits[:length])
    require(len(ones) == count, "bits set in the unary part")
    indices = (ones - np.arange(count)) << low | bits[length:].reshape(count, low) @ (1 << np.arange(low, dtype=np.int64))
    require(bool((np.diff(indices) > 0).all()), "ascending indices")
    require(int(indices[-1]) < size, "index below size")
    return indices


def write_gamma(numbers: Sequence[int]) -> bytes:
    bits: list[int] = []
    for number in numbers:
        below = number.bit_length() - 1
        bits += [0] * below + [1] + [number >> k & 1 for k in range(below)]
    return pack_stream(bits)


def encode_run_length(size: int, indices: np.ndarray) -> bytes:
    kept = np.zeros(size, np.int64)
    kept[indices] = 1
    ends = np.flatnonzero(np.diff(kept, prepend=0))
    first, *others = np.diff(ends, prepend=0).tolist()
    return write_gamma([first + 1, *others])


def decode_run_length(size: int, count: int, code: bytes) -> np.ndarray:
    bits = np.unpackbits(np.frombuffer(code, np.uint8), bitorder="little").tolist()
    left = [size - count, count]
    indices: list[int] = []
    position, place, kept = 0, 0, 0
    while all(left):
        require(1 in bits[position:], "runs end early")
        one = bits.index(1, position)
        below = one - position
        position = one + 1 + below
        require(position <= len(bits), "runs end early")
        run = (1 << below) + sum(bit << k for k, bit in enumerate(bits[one + 1 : position])) - (place == 0 and not kept)
        require(run <= left[kept], "runs within the size and the count")
        if kept:
            indices += range(place, place + run)
        left[kept] -= run
        place += run
        kept = 1 - kept
    require(len(code) == (position + 7) // 8, "bytes after the runs")
    require(not any(bits[position:]), "unused bits")
    return np.array([*indices, *range(place, place + left[1])], np.int64)


def encode_adaptive(size: int, indices: np.ndarray, rows: int, columns: int) -> bytes:
    """The shorter form; Rice's, which here is raw where that is not longer, when they are equal."""
    return min(encode_rice(size, indices), encode_tree(size, indices, rows, columns), key=len)


def decode_adaptive(size: int, count: int, code: bytes) -> np.ndarray:
    require(len(code) >= 1, "index code length")
    if code[0] < 0x80:
        return decode_rice(size, count, code)
    indices = decode_tree(size, count, code)
    require(len(code) < len(encode_rice(size, indices)), "tree only where Rice's form is not as short")
    return indices


def seeded_support(size: int, count: int, seed: int, step: int, segment: int) -> np.ndarray:
    return random_support(stream_key(seed, step, segment), size, count)
