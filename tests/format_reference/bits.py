"""What the codes of docs/format.md are made of: bit fields, float32 bytes, the generator; and the error that all of them raise."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

LARGEST = 2**31 - 1
LARGEST_FLOAT = np.float32(3.4028235e38)
SMALLEST_NORMAL_BITS = 0x00800000
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


def index_width(size: int) -> int:
    return max(1, (size - 1).bit_length())


def raw_index_length(size: int, count: int) -> int:
    return packed_length(count, index_width(size))


def places_left_out(size: int, places: np.ndarray) -> np.ndarray:
    kept = np.ones(size, bool)
    kept[places] = False
    return np.flatnonzero(kept)


def write_leb128(number: int) -> bytes:
    out = bytearray()
    while True:
        out.append(number & 0x7F | (0x80 if number > 0x7F else 0))
        number >>= 7
        if not number:
            return bytes(out)


def read_leb128(data: bytes, position: int, truncated: str) -> tuple[int, int]:
    number = 0
    for k in range(5):
        require(position < len(data), truncated)
        byte = data[position]
        position += 1
        number |= (byte & 0x7F) << 7 * k
        if not byte & 0x80:
            require(byte != 0 or k == 0, "number longer than needed")
            require(number < 2**32, "number above 2^32 - 1")
            return number, position
    raise FormatError("number above five bytes")


def floats(code: bytes) -> np.ndarray:
    return np.frombuffer(code, "<f4").astype(np.float32)


def finite(values: np.ndarray) -> np.ndarray:
    require(bool(np.isfinite(values).all()), "finite values")
    return values


def without_sign(numbers: np.ndarray) -> bool:
    return not np.signbit(numbers).any()


def raw_values(values: np.ndarray) -> bytes:
    return np.asarray(values, "<f4").tobytes()


def mix(z: int) -> int:
    z ^= z >> 30
    z = z * 0xBF58476D1CE4E5B9 & MASK64
    z ^= z >> 27
    z = z * 0x94D049BB133111EB & MASK64
    return z ^ z >> 31


def stream_key(seed: int, step: int, segment: int) -> int:
    key = mix((seed + GOLDEN) & MASK64)
    key = mix((key + step * GOLDEN) & MASK64)
    return mix((key + segment * GOLDEN) & MASK64)


def random_support(key: int, size: int, count: int) -> np.ndarray:
    drawn: set[int] = set()
    j = 0
    while len(drawn) < min(count, size - count):
        drawn.add(mix((key + (j + 1) * GOLDEN) & MASK64) * size >> 64)
        j += 1
    places = np.array(sorted(drawn), np.int64)
    return places if 2 * count <= size else places_left_out(size, places)
