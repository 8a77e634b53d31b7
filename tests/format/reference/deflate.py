"""Deflate: a zlib stream of what another value codec writes."""

from __future__ import annotations

import zlib

import numpy as np

from format.reference.bfloat16 import BFLOAT16
from format.reference.bits import FormatError, require
from format.reference.float16 import FLOAT16
from format.reference.float32 import FLOAT32
from format.reference.value_codes import VALUE_CODES, ValueCode, decode_value, encode_value, register


def shuffle(raw: bytes, stride: int) -> bytes:
    return np.frombuffer(raw, np.uint8).reshape(-1, stride).T.tobytes()


def unshuffle(shuffled: bytes, stride: int) -> bytes:
    return np.frombuffer(shuffled, np.uint8).reshape(stride, -1).T.tobytes()


def number_bytes(inner: ValueCode, length: int, number: int) -> int:
    """The stride of an inner code's own numbers."""
    return 4 if length == 4 * number else 2 if inner in (FLOAT16, BFLOAT16) else 1


def encode_deflate(values: np.ndarray, inner: ValueCode = FLOAT32, shuffled: bool = True, **options) -> bytes:
    code = encode_value(inner, values, **options)
    stride = number_bytes(inner, len(code), len(values)) if shuffled else 1
    stream = zlib.compress(shuffle(code, stride), 9)
    return bytes([inner.id, stride]) + stream if len(stream) < len(code) else bytes([inner.id, 0]) + code


def inflate(stream: bytes, longest: int) -> bytes:
    inflater = zlib.decompressobj()
    try:
        content = inflater.decompress(stream, longest + 1)
    except zlib.error as error:
        raise FormatError("zlib stream") from error
    require(len(content) <= longest, "length of the deflated content")
    require(inflater.eof, "zlib stream")
    require(inflater.unused_data == b"", "bytes after the zlib stream")
    return content


def decode_deflate(number: int, code: bytes) -> np.ndarray:
    require(len(code) > 2, "value code length")
    inner, stride = VALUE_CODES.get(code[0]), code[1]
    require(inner not in (None, DEFLATE), "codec under deflate")
    require(stride in (0, 1, 2, 4), "stride of the byte shuffle")
    if stride == 0:
        return decode_value(inner, number, code[2:])
    content = inflate(code[2:], 4 * number)
    require(stride in (1, number_bytes(inner, len(content), number)), "stride of the byte shuffle")
    return decode_value(inner, number, unshuffle(content, stride))


DEFLATE = register(ValueCode(6, "Deflate", encode_deflate, decode_deflate))
