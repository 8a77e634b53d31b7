"""What value codes share: their registry, the empty form and the raw form."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from format.reference.bits import finite, floats, require


@dataclass(frozen=True, repr=False)
class ValueCode:
    """A value codec of the page.

    Attributes:
        id: its id in the frame.
        name: its name on the page.
        encode: (values, and options of the codec) to its own form, of any length. `noise` is what is added before rounding down.
        decode: (number of values, code) to the values of its own form.
    """

    id: int
    name: str
    encode: Callable[..., bytes]
    decode: Callable[[int, bytes], np.ndarray]

    def __repr__(self) -> str:
        return self.name


VALUE_CODES: dict[int, ValueCode] = {}


def register(code: ValueCode) -> ValueCode:
    assert code.id not in VALUE_CODES
    VALUE_CODES[code.id] = code
    return code


def raw_values(values: np.ndarray) -> bytes:
    return np.asarray(values, "<f4").tobytes()


def encode_value(codec: ValueCode, values: np.ndarray, **options) -> bytes:
    """The codec's own form where that is shorter and the values are finite, otherwise raw."""
    values = np.asarray(values, np.float32)
    raw = raw_values(values)
    if len(values) == 0 or not np.isfinite(values).all():
        return raw
    coded = codec.encode(values, **options)
    return coded if len(coded) < len(raw) else raw


def decode_value(codec: ValueCode, number: int, code: bytes) -> np.ndarray:
    """The values, float32[number]."""
    require(len(code) <= 4 * number, "value code length")
    if len(code) == 4 * number:
        return floats(code)
    require(len(code) > 0, "value code length")
    return finite(codec.decode(number, code))
