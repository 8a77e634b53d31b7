"""What all codes are made of: bit fields, LEB128 numbers, float32 bytes; and the error that all of them raise."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

MAX_SIZE = 2**31 - 1
LARGEST_FLOAT = np.float32(3.4028235e38)
SMALLEST_NORMAL_BITS = 0x00800000
SMALLEST_SCALE = np.float32(2.0**-100)


class FormatError(ValueError):
    """Bytes that no encoder writes; `name` says which rule they break."""

    def __init__(self, name: str):
        super().__init__(name)
        self.name = name


def require(condition: bool, name: str) -> None:
    if not condition:
        raise FormatError(name)


def field_bits(field: int, width: int) -> list[int]:
    """The bits of a field in the order in which they are written: the lowest first."""
    return [field >> k & 1 for k in range(width)]


def pack_stream(bits: Sequence[int] | np.ndarray) -> bytes:
    """Bits in the order in which they are written."""
    return np.packbits(np.array(bits, np.uint8), bitorder="little").tobytes()


def pack_bits(fields: Sequence[int] | np.ndarray, width: int) -> bytes:
    """Fields of `width` bits, one after another from the least significant bit of each byte upwards."""
    fields = np.asarray(fields, np.uint64)
    bits = (fields[:, None] >> np.arange(width, dtype=np.uint64)) & np.uint64(1)
    return pack_stream(bits.ravel())


def unpack_bits(code: bytes, count: int, width: int) -> np.ndarray:
    """The inverse of pack_bits; the caller has checked that `code` has exactly the bytes that the fields fill."""
    bits = np.unpackbits(np.frombuffer(code, np.uint8), bitorder="little").astype(np.int64)
    require(not bits[count * width :].any(), "unused bits")
    return bits[: count * width].reshape(count, width) @ (1 << np.arange(width, dtype=np.int64))


def packed_length(count: int, width: int) -> int:
    return (count * width + 7) // 8


def index_width(size: int) -> int:
    return max(1, (size - 1).bit_length())


def gamma_bits(number: int) -> list[int]:
    below = number.bit_length() - 1
    return [0] * below + [1] + field_bits(number, below)


def write_gamma(numbers: Sequence[int]) -> bytes:
    return pack_stream([bit for number in numbers for bit in gamma_bits(number)])


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

    def bit(self) -> int:
        require(self.position < len(self.bits), self.length)
        self.position += 1
        return self.bits[self.position - 1]

    def gamma(self, largest: int, name: str) -> int:
        below = 0
        while self.bit() == 0:
            below += 1
            require(1 << below <= largest, name)
        number = 1 << below | self.field(below)
        require(number <= largest, name)
        return number

    def finish(self) -> None:
        require(len(self.bits) - self.position < 8, self.length)
        require(not any(self.bits[self.position :]), "unused bits")


def write_leb128(number: int) -> bytes:
    out = bytearray()
    while True:
        out.append(number & 0x7F | (0x80 if number > 0x7F else 0))
        number >>= 7
        if not number:
            return bytes(out)


def read_leb128(data: bytes, position: int, truncated: str) -> tuple[int, int]:
    """The number at a position, and the position after it."""
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


def check_scales(scales: np.ndarray) -> None:
    """The scales of QSGD, TernGrad and ThreeLC."""
    require(bool(np.isfinite(scales).all()) and without_sign(scales), "scale finite and not negative")
    require(bool(((scales == 0) | (scales >= SMALLEST_SCALE)).all()), "scale 0 or at least 2^-100")
