"""A second implementation of docs/format.md, in NumPy, written from that page alone.

It is slow and plain on purpose: it is what the C++ codecs are held against. Every rule of the page is checked, and bytes that no
encoder writes raise a FormatError that names the rule.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

MAGIC = b"DRTF"
VERSION = 1
HEADER = struct.Struct("<4sBBBBIIQQ")

SEEDED, FIXED_WIDTH, BITMAP, RICE, ELIAS_FANO, RUN_LENGTH = range(6)
FLOAT32, FLOAT16, BFLOAT16, QSGD, LOG_QUANTIZER, DEFLATE = 1, 2, 3, 4, 5, 6
APPLICATION = 255
INDEX_CODECS = (SEEDED, FIXED_WIDTH, BITMAP, RICE, ELIAS_FANO, RUN_LENGTH, APPLICATION)
VALUE_CODECS = (FLOAT32, FLOAT16, BFLOAT16, QSGD, LOG_QUANTIZER, DEFLATE, APPLICATION)

LARGEST = 2**31 - 1
LARGEST_FLOAT = np.float32(3.4028235e38)
SMALLEST_NORMAL_BITS = 0x00800000
SMALLEST_SCALE = np.float32(2.0**-100)
SCALE_GROUP = 512
MASK64 = 2**64 - 1
GOLDEN = 0x9E3779B97F4A7C15


class FormatError(ValueError):
    """Bytes that no encoder writes; `name` says which rule of the page they break."""

    def __init__(self, name: str):
        super().__init__(name)
        self.name = name


def require(condition: bool, name: str) -> None:
    if not condition:
        raise FormatError(name)


@dataclass
class Row:
    """One row of the table."""

    size: int
    count: int
    width: int
    index_length: int
    value_length: int


@dataclass
class Segment:
    """One decoded segment. `indices` or `values` is None when the codec is the application's own."""

    size: int
    count: int
    width: int
    index_code: bytes
    value_code: bytes
    indices: np.ndarray | None
    values: np.ndarray | None


@dataclass
class Frame:
    index_codec: int
    value_codec: int
    seed: int
    step: int
    fingerprint: int
    segments: list[Segment]
    length: int


# Bits


def pack_bits(fields: Sequence[int] | np.ndarray, width: int) -> bytes:
    """Fields of `width` bits, one after another from the least significant bit of each byte upwards."""
    fields = np.asarray(fields, np.uint64)
    bits = (fields[:, None] >> np.arange(width, dtype=np.uint64)) & np.uint64(1)
    return np.packbits(bits.astype(np.uint8).ravel(), bitorder="little").tobytes()


def pack_stream(bits: Sequence[int] | np.ndarray) -> bytes:
    """Bits in the order in which they are written."""
    return np.packbits(np.array(bits, np.uint8), bitorder="little").tobytes()


def unpack_bits(code: bytes, count: int, width: int) -> np.ndarray:
    """The inverse of pack_bits; the caller has checked that `code` has exactly the bytes that the fields fill."""
    bits = np.unpackbits(np.frombuffer(code, np.uint8), bitorder="little").astype(np.int64)
    require(not bits[count * width :].any(), "unused bits")
    return bits[: count * width].reshape(count, width) @ (1 << np.arange(width, dtype=np.int64))


def packed_length(count: int, width: int) -> int:
    return (count * width + 7) // 8


# Index codes


def index_width(size: int) -> int:
    return max(1, (size - 1).bit_length())


def raw_index_length(size: int, count: int) -> int:
    return packed_length(count, index_width(size))


def encode_index(codec: int, size: int, indices: np.ndarray, seed: int = 0, step: int = 0, segment: int = 0) -> bytes:
    """The one code of a support: the codec's own form where that is shorter, otherwise raw."""
    indices = np.asarray(indices, np.int64)
    count = len(indices)
    if count in (0, size):
        return b""
    if codec == SEEDED:
        if not np.array_equal(indices, seeded_support(size, count, seed, step, segment)):
            raise ValueError("only the seeded support can be coded under this codec")
        return b""
    raw = pack_bits(indices, index_width(size))
    encoders = {BITMAP: encode_bitmap, RICE: encode_rice, ELIAS_FANO: encode_elias_fano, RUN_LENGTH: encode_run_length}
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
    raw_length = raw_index_length(size, count)
    require(len(code) <= raw_length, "index code length")
    if len(code) == raw_length:
        indices = unpack_bits(code, count, index_width(size))
        require(bool((np.diff(indices) > 0).all()), "ascending indices")
        require(int(indices[-1]) < size, "index below size")
        require(encode_index(codec, size, indices) == code, "raw only where the coded form is not shorter")
        return indices
    require(codec != FIXED_WIDTH, "index code length")
    decoders = {BITMAP: decode_bitmap, RICE: decode_rice, ELIAS_FANO: decode_elias_fano, RUN_LENGTH: decode_run_length}
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


def places_left_out(size: int, places: np.ndarray) -> np.ndarray:
    kept = np.ones(size, bool)
    kept[places] = False
    return np.flatnonzero(kept)


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


def mix(z: int) -> int:
    z ^= z >> 30
    z = z * 0xBF58476D1CE4E5B9 & MASK64
    z ^= z >> 27
    z = z * 0x94D049BB133111EB & MASK64
    return z ^ z >> 31


def seeded_support(size: int, count: int, seed: int, step: int, segment: int) -> np.ndarray:
    key = mix((seed + GOLDEN) & MASK64)
    key = mix((key + step * GOLDEN) & MASK64)
    key = mix((key + segment * GOLDEN) & MASK64)
    drawn: set[int] = set()
    j = 0
    while len(drawn) < min(count, size - count):
        drawn.add(mix((key + (j + 1) * GOLDEN) & MASK64) * size >> 64)
        j += 1
    places = np.array(sorted(drawn), np.int64)
    return places if 2 * count <= size else places_left_out(size, places)


# Value codes


def floats(code: bytes) -> np.ndarray:
    return np.frombuffer(code, "<f4").astype(np.float32)


def finite(values: np.ndarray) -> np.ndarray:
    require(bool(np.isfinite(values).all()), "finite values")
    return values


def without_sign(numbers: np.ndarray) -> bool:
    return not np.signbit(numbers).any()


def raw_values(values: np.ndarray) -> bytes:
    return np.asarray(values, "<f4").tobytes()


def encode_value(codec: int, values: np.ndarray, **options) -> bytes:
    """The codec's own form where that is shorter and the values are finite, otherwise raw.

    Options: `bits` and `noise` for QSGD, `bits` for LogQuantizer, `stride` for Deflate.
    """
    values = np.asarray(values, np.float32)
    raw = raw_values(values)
    if len(values) == 0 or not np.isfinite(values).all():
        return raw
    encoders = {FLOAT16: encode_float16, BFLOAT16: encode_bfloat16, QSGD: encode_qsgd, LOG_QUANTIZER: encode_log, DEFLATE: encode_deflate}
    coded = encoders[codec](values, **options) if codec in encoders else raw
    return coded if len(coded) < len(raw) else raw


def decode_value(codec: int, number: int, code: bytes) -> np.ndarray:
    """The values, float32[number]."""
    require(len(code) <= 4 * number, "value code length")
    if len(code) == 4 * number:
        return floats(code)
    require(codec != FLOAT32 and len(code) > 0, "value code length")
    decoders = {FLOAT16: decode_float16, BFLOAT16: decode_bfloat16, QSGD: decode_qsgd, LOG_QUANTIZER: decode_log, DEFLATE: decode_deflate}
    return finite(decoders[codec](number, code))


def encode_float16(values: np.ndarray) -> bytes:
    with np.errstate(over="ignore"):
        halves = values.astype("<f2")
    return halves.tobytes() if np.isfinite(halves).all() else raw_values(values)


def decode_float16(number: int, code: bytes) -> np.ndarray:
    require(len(code) == 2 * number, "value code length")
    return np.frombuffer(code, "<f2").astype(np.float32)


def encode_bfloat16(values: np.ndarray) -> bytes:
    bits = values.view(np.uint32).astype(np.uint64)
    high = ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype("<u2")
    overflows = ((high & 0x7F80) == 0x7F80).any()
    return raw_values(values) if overflows else high.tobytes()


def decode_bfloat16(number: int, code: bytes) -> np.ndarray:
    require(len(code) == 2 * number, "value code length")
    return (np.frombuffer(code, "<u2").astype(np.uint32) << 16).view(np.float32)


def groups_of(number: int) -> int:
    return (number + SCALE_GROUP - 1) // SCALE_GROUP


def write_qsgd(bits: int, l2: bool, scales: np.ndarray, magnitudes: np.ndarray, negative: np.ndarray) -> bytes:
    """The bytes for given scales and levels, also such that no encoder chooses."""
    levels = np.asarray(magnitudes, np.int64) | np.asarray(negative, np.int64) << (bits - 1)
    return bytes([bits | l2 << 4]) + np.asarray(scales, "<f4").tobytes() + pack_bits(levels, bits)


def encode_qsgd(values: np.ndarray, bits: int = 8, noise: np.ndarray | float = 0.5) -> bytes:
    """Max norm. A magnitude m becomes the level floor(m * s / scale + noise); noise 0.5 rounds to nearest."""
    s = 2 ** (bits - 1) - 1
    starts = np.arange(0, len(values), SCALE_GROUP)
    scales = np.maximum.reduceat(np.abs(values), starts)
    scales[scales < SMALLEST_SCALE] = 0
    scale = np.repeat(scales, SCALE_GROUP)[: len(values)].astype(np.float64)
    relative = np.divide(np.abs(values), scale, out=np.zeros(len(values)), where=scale > 0)
    magnitudes = np.where(scale > 0, np.minimum(np.floor(relative * s + noise), s), 0).astype(np.int64)
    return write_qsgd(bits, False, scales, magnitudes, (values < 0) & (magnitudes > 0))


def decode_qsgd(number: int, code: bytes) -> np.ndarray:
    bits = code[0] & 0x0F
    require(not code[0] & 0xE0, "reserved bits")
    require(2 <= bits <= 8, "bits of a level")
    levels_at = 1 + 4 * groups_of(number)
    require(len(code) == levels_at + packed_length(number, bits), "value code length")
    scales = floats(code[1:levels_at])
    require(bool(np.isfinite(scales).all()) and without_sign(scales), "scale finite and not negative")
    require(bool(((scales == 0) | (scales >= SMALLEST_SCALE)).all()), "scale 0 or at least 2^-100")
    levels = unpack_bits(code[levels_at:], number, bits)
    magnitudes, negative = levels & (2 ** (bits - 1) - 1), levels >> (bits - 1) == 1
    require(not negative[magnitudes == 0].any(), "sign of a zero")
    step = np.repeat(scales / np.float32(2 ** (bits - 1) - 1), SCALE_GROUP)[:number]
    require(not magnitudes[step == 0].any(), "level under scale 0")
    with np.errstate(over="ignore"):
        values = np.minimum(magnitudes.astype(np.float32) * step, LARGEST_FLOAT)
    return np.where(negative, -values, values)


def log_bins(bits: int, zeros: bool) -> int:
    return 2 ** (bits - 1) - zeros


def log_centres(lo: int, hi: int, bins: int) -> np.ndarray:
    j = np.arange(bins, dtype=np.int64)
    return (lo + (2 * j + 1) * (hi - lo) // (2 * bins)).astype(np.uint32).view(np.float32)


def write_log(bits: int, zeros: bool, table: np.ndarray | None, ends: tuple, levels: np.ndarray, negative: np.ndarray) -> bytes:
    """The bytes for given fields, also such that no encoder chooses. `ends` is (lo, hi), used when `table` is None."""
    numbers = np.asarray(ends if table is None else table, "<f4")
    fields = np.asarray(levels, np.int64) | np.asarray(negative, np.int64) << (bits - 1)
    return bytes([bits | (table is not None) << 4 | zeros << 5]) + numbers.tobytes() + pack_bits(fields, bits)


def encode_log(values: np.ndarray, bits: int = 8) -> bytes:
    magnitudes = (values.view(np.uint32) & 0x7FFFFFFF).astype(np.int64)
    present = magnitudes >= SMALLEST_NORMAL_BITS
    if not present.any():
        return write_log(bits, True, None, (1, 1), np.zeros(len(values), np.int64), np.zeros(len(values), bool))
    zeros = not present.all()
    bins = log_bins(bits, zeros)
    lo, hi = int(magnitudes[present].min()), int(magnitudes[present].max())
    bin_of = np.where(present, (magnitudes - lo) * bins // (hi - lo + 1), -1)
    levels = bin_of + zeros
    negative = present & np.signbit(values)
    ends = tuple(np.array([lo, hi], np.uint32).view(np.float32))
    if len(values) < 16 * bins:
        return write_log(bits, zeros, None, ends, levels, negative)
    means = [np.abs(values[bin_of == j]).mean(dtype=np.float64) if (bin_of == j).any() else 0 for j in range(bins)]
    return write_log(bits, zeros, np.array(means, np.float32), ends, levels, negative)


def decode_log(number: int, code: bytes) -> np.ndarray:
    bits, with_table, zeros = code[0] & 0x0F, bool(code[0] & 0x10), bool(code[0] & 0x20)
    require(not code[0] & 0xC0, "reserved bits")
    require(2 <= bits <= 8, "bits of a level")
    bins = log_bins(bits, zeros)
    levels_at = 1 + 4 * (bins if with_table else 2)
    require(len(code) == levels_at + packed_length(number, bits), "value code length")
    fields = unpack_bits(code[levels_at:], number, bits)
    low, negative = fields & (2 ** (bits - 1) - 1), fields >> (bits - 1) == 1
    is_zero = (low == 0) & zeros
    require(is_zero.any() or not zeros, "zeros in the segment")
    require(not negative[is_zero].any(), "sign of a zero")
    used = np.unique(low[~is_zero] - zeros)
    numbers = floats(code[1:levels_at])
    if with_table:
        require(number >= 16 * bins and len(used) > 0, "table of bin means")
        centres = check_means(numbers, used)
    else:
        require(number < 16 * bins or len(used) == 0, "table of bin means")
        require(len(used) > 0 or bool((numbers == 1).all()), "ends of a segment of zeros")
        centres = centres_between(numbers, bins)
    values = np.concatenate([[np.float32(0)] * zeros, centres]).astype(np.float32)[low]
    return np.where(negative, -values, values)


def check_means(means: np.ndarray, used: np.ndarray) -> np.ndarray:
    require(bool(np.isfinite(means).all()) and without_sign(means), "bin mean finite and not negative")
    bits = means.view(np.uint32)
    require(bool(((bits == 0) | (bits >= SMALLEST_NORMAL_BITS)).all()), "bin mean 0 or at least 2^-126")
    require(np.array_equal(np.flatnonzero(means), used), "bin mean 0 exactly for an empty bin")
    return means


def centres_between(ends: np.ndarray, bins: int) -> np.ndarray:
    require(bool(np.isfinite(ends).all()) and without_sign(ends), "lowest and highest magnitude")
    lo, hi = (int(x) for x in ends.view(np.uint32))
    require(SMALLEST_NORMAL_BITS <= lo <= hi, "lowest and highest magnitude")
    return log_centres(lo, hi, bins)


def shuffle(raw: bytes, stride: int) -> bytes:
    return np.frombuffer(raw, np.uint8).reshape(-1, stride).T.tobytes()


def unshuffle(shuffled: bytes, stride: int) -> bytes:
    return np.frombuffer(shuffled, np.uint8).reshape(stride, -1).T.tobytes()


def encode_deflate(values: np.ndarray, stride: int = 4) -> bytes:
    return bytes([FLOAT32, stride]) + zlib.compress(shuffle(raw_values(values), stride), 9)


def decode_deflate(number: int, code: bytes) -> np.ndarray:
    require(len(code) > 2, "value code length")
    require(code[0] == FLOAT32, "codec under deflate")
    require(code[1] in (1, 4), "stride of the byte shuffle")
    inflater = zlib.decompressobj()
    try:
        content = inflater.decompress(code[2:], 4 * number + 1)
    except zlib.error as error:
        raise FormatError("zlib stream") from error
    require(len(content) == 4 * number, "length of the deflated content")
    require(inflater.eof, "zlib stream")
    require(inflater.unused_data == b"", "bytes after the zlib stream")
    return floats(unshuffle(content, code[1]))


# The frame


def write_leb128(number: int) -> bytes:
    out = bytearray()
    while True:
        out.append(number & 0x7F | (0x80 if number > 0x7F else 0))
        number >>= 7
        if not number:
            return bytes(out)


def read_leb128(data: bytes, position: int) -> tuple[int, int]:
    number = 0
    for k in range(5):
        require(position < len(data), "truncated table")
        byte = data[position]
        position += 1
        number |= (byte & 0x7F) << 7 * k
        if not byte & 0x80:
            require(byte != 0 or k == 0, "number longer than needed")
            require(number < 2**32, "number above 2^32 - 1")
            return number, position
    raise FormatError("number above five bytes")


def read_row(data: bytes, position: int) -> tuple[Row, int]:
    numbers = []
    for _ in range(5):
        number, position = read_leb128(data, position)
        numbers.append(number)
    row = Row(*numbers)
    require(row.size <= LARGEST, "size")
    require(row.count <= row.size, "count")
    require(row.width >= 1, "width")
    require(row.count * row.width <= LARGEST, "values of a segment")
    return row, position


def write_frame(index_codec: int, value_codec: int, rows: Sequence[tuple], seed: int = 0, step: int = 0, fingerprint: int = 0) -> bytes:
    """A frame of given codes; a row is (size, count, width, index code, value code)."""
    header = HEADER.pack(MAGIC, VERSION, index_codec, value_codec, 0, len(rows), seed, step, fingerprint)
    table = b"".join(
        write_leb128(number) for size, count, width, index, value in rows for number in (size, count, width, len(index), len(value))
    )
    frame = header + table + b"".join(row[3] for row in rows) + b"".join(row[4] for row in rows)
    return frame + bytes(-len(frame) % 8)


def encode_frame(
    index_codec: int, value_codec: int, segments: Sequence[tuple], seed: int = 0, step: int = 0, fingerprint: int = 0, **options
) -> bytes:
    """A frame of given content; a segment is (size, width, indices, values). Options are those of encode_value."""
    rows = []
    for j, (size, width, indices, values) in enumerate(segments):
        index = encode_index(index_codec, size, indices, seed, step, j)
        rows.append((size, len(indices), width, index, encode_value(value_codec, values, **options)))
    return write_frame(index_codec, value_codec, rows, seed, step, fingerprint)


def read_frame(data: bytes, start: int = 0, sizes: Sequence[int] | None = None) -> Frame:
    """The frame that begins at `start`. With `sizes`, those of this rank, nothing larger is ever allocated."""
    require(len(data) - start >= HEADER.size, "truncated header")
    magic, version, index_codec, value_codec, reserved, number, seed, step, fingerprint = HEADER.unpack_from(data, start)
    require(magic == MAGIC, "magic")
    require(version == VERSION, "version")
    require(index_codec in INDEX_CODECS, "index codec")
    require(value_codec in VALUE_CODECS, "value codec")
    require(reserved == 0, "reserved byte")
    require(sizes is None or number == len(sizes), "number of segments")
    position = start + HEADER.size
    require(5 * number <= len(data) - position, "truncated table")
    rows = []
    for _ in range(number):
        row, position = read_row(data, position)
        rows.append(row)
    require(sizes is None or [row.size for row in rows] == list(sizes), "size of this rank")
    value_at = position + sum(row.index_length for row in rows)
    end = value_at + sum(row.value_length for row in rows)
    padded_end = end + -(end - start) % 8
    require(padded_end <= len(data), "truncated frame")
    require(not any(data[end:padded_end]), "padding")
    frame = Frame(index_codec, value_codec, seed, step, fingerprint, [], padded_end - start)
    for j, row in enumerate(rows):
        index_code = bytes(data[position : position + row.index_length])
        value_code = bytes(data[value_at : value_at + row.value_length])
        position += row.index_length
        value_at += row.value_length
        frame.segments.append(read_segment(frame, j, row, index_code, value_code))
    return frame


def read_segment(frame: Frame, j: int, row: Row, index_code: bytes, value_code: bytes) -> Segment:
    number = row.count * row.width
    values = indices = None
    if number == 0:
        require(value_code == b"", "value code length")
    if frame.value_codec != APPLICATION:
        values = decode_value(frame.value_codec, number, value_code)
    if frame.index_codec != APPLICATION:
        indices = decode_index(frame.index_codec, row.size, row.count, index_code, frame.seed, frame.step, j)
    return Segment(row.size, row.count, row.width, index_code, value_code, indices, values)


def decode_frame(data: bytes, sizes: Sequence[int] | None = None) -> Frame:
    """The one frame that `data` holds."""
    frame = read_frame(data, 0, sizes)
    require(frame.length == len(data), "bytes after the frame")
    return frame


def split_frames(data: bytes, sizes: Sequence[int] | None = None) -> list[Frame]:
    """The frames that lie end to end in `data`, one per rank."""
    frames = []
    start = 0
    while start < len(data):
        frames.append(read_frame(data, start, sizes))
        start += frames[-1].length
    return frames
