"""What index codes share: their registry, the empty form and the raw form."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from format.reference.bits import index_width, pack_bits, packed_length, require, unpack_bits


@dataclass(frozen=True, repr=False)
class IndexCode:
    """An index codec of the page.

    Attributes:
        id: its id in the frame.
        name: its name on the page.
        encode: (size, indices, and options of the codec) to its own form, of any length; None where a support decodes to another one.
        decode: (size, count, code) to the support of its own form.
        has_raw: whether it has a raw form. Where not, `encode` and `decode` take the seed, the step and the number of the segment too.
        encode_without_shape: what a decoder asks whether raw indices should have been coded, where that is not `encode`.
    """

    id: int
    name: str
    encode: Callable[..., bytes] | None
    decode: Callable[..., np.ndarray]
    has_raw: bool = True
    encode_without_shape: Callable[..., bytes] | None = None

    def __repr__(self) -> str:
        return self.name


INDEX_CODES: dict[int, IndexCode] = {}


def register(code: IndexCode) -> IndexCode:
    assert code.id not in INDEX_CODES
    INDEX_CODES[code.id] = code
    return code


def raw_index_length(size: int, count: int) -> int:
    return packed_length(count, index_width(size))


def write_raw(size: int, indices: np.ndarray) -> bytes:
    return pack_bits(indices, index_width(size))


def read_raw(size: int, count: int, code: bytes) -> np.ndarray:
    indices = unpack_bits(code, count, index_width(size))
    check_support(size, indices)
    return indices


def check_support(size: int, indices: np.ndarray) -> None:
    require(bool((np.diff(indices) > 0).all()), "ascending indices")
    require(int(indices[-1]) < size, "index below size")


def encode_index(codec: IndexCode, size: int, indices: np.ndarray, seed: int = 0, step: int = 0, segment: int = 0, **options) -> bytes:
    """The code of a support: the codec's own form where that is shorter, otherwise raw. Options: `rows` and `columns` of Adaptive."""
    indices = np.asarray(indices, np.int64)
    if len(indices) in (0, size):
        return b""
    if not codec.has_raw:
        return codec.encode(size, indices, seed, step, segment)
    coded = codec.encode(size, indices, **options)
    return coded if len(coded) < raw_index_length(size, len(indices)) else write_raw(size, indices)


def decode_index(codec: IndexCode, size: int, count: int, code: bytes, seed: int = 0, step: int = 0, segment: int = 0) -> np.ndarray:
    """The support, int64[count], ascending."""
    if count in (0, size):
        require(code == b"", "index code length")
        return np.arange(count, dtype=np.int64)
    if not codec.has_raw:
        return codec.decode(size, count, code, seed, step, segment)
    raw_length = raw_index_length(size, count)
    require(len(code) <= raw_length, "index code length")
    if len(code) < raw_length:
        return codec.decode(size, count, code)
    indices = read_raw(size, count, code)
    encode = codec.encode_without_shape or codec.encode
    require(len(encode(size, indices)) >= raw_length, "raw only where the coded form is not shorter")
    return indices
