"""The two implementations of the format under one interface: the reference, and the C++ ops."""

from __future__ import annotations

import re
from itertools import pairwise

import numpy as np
import pytest
import tensorflow as tf

from deepreduce_tf import ops
from format import reference
from format.reference import FormatError, IndexCode, ValueCode
from format.reference.adaptive import ADAPTIVE
from format.reference.fixed_width import FIXED_WIDTH
from format.reference.float32 import FLOAT32
from format.reference.index_codes import write_raw
from format.reference.rice import RICE

REFUSED = (FormatError, tf.errors.DataLossError)


class Reference:
    def refuses(self, name: str):
        return pytest.raises(FormatError, match=f"^{re.escape(name)}$")

    def decode_index(self, codec: IndexCode, size: int, count: int, code: bytes, **stream) -> np.ndarray:
        """`stream`: `seed`, `step` and `segment`."""
        return reference.decode_index(codec, size, count, code, **stream)

    def decode_value(self, codec: ValueCode, number: int, code: bytes) -> np.ndarray:
        return reference.decode_value(codec, number, code)

    def decode_frames(self, data: bytes, sizes: list[int], widths: list[int] | None = None) -> list[tuple]:
        return [(segment.indices, segment.values) for frame in reference.split_frames(data, sizes) for segment in frame.segments]


class Ops:
    """The ops name other errors than the reference, so only their kind is held: DataLoss."""

    def refuses(self, name: str):
        return pytest.raises(tf.errors.DataLossError)

    def decode_index(self, codec: IndexCode, size: int, count: int, code: bytes, segment: int = 0, **header) -> np.ndarray:
        assert segment == 0
        frame = reference.write_frame(codec.id, FLOAT32.id, [(size, count, 1, code, bytes(4 * count))], **header)
        return decode_with_ops(frame, [size], [1], codec, FLOAT32)[0][0]

    def decode_value(self, codec: ValueCode, number: int, code: bytes) -> np.ndarray:
        frame = reference.write_frame(FIXED_WIDTH.id, codec.id, [(number, number, 1, b"", code)])
        return decode_with_ops(frame, [number], [1], FIXED_WIDTH, codec)[0][1]

    def decode_frames(self, data: bytes, sizes: list[int], widths: list[int] | None = None) -> list[tuple]:
        return decode_with_ops(data, sizes, widths or [1] * len(sizes), RICE, FLOAT32)


REFERENCE, OPS = Reference(), Ops()


def decode_with_ops(data: bytes, sizes: list[int], widths: list[int], index_codec: IndexCode, value_codec: ValueCode) -> list[tuple]:
    """(indices, values) of each segment of each frame. The fingerprint is taken from the first frame."""
    payload = np.frombuffer(data, np.int64)
    indices, values, splits = ops.frame_decode(
        payload=payload,
        sizes=np.array(sizes, np.int64),
        fingerprint=payload[3] if len(payload) > 3 else 0,
        widths=np.array(widths, np.int64),
        index_codec=index_codec.id,
        value_codec=value_codec.id,
    )
    indices, values, splits = indices.numpy(), values.numpy(), splits.numpy()
    segments, value_at = [], 0
    for j, (begin, end) in enumerate(pairwise(splits)):
        number = (end - begin) * widths[j % len(sizes)]
        segments.append((indices[begin:end], values[value_at : value_at + number]))
        value_at += number
    assert value_at == len(values)
    return segments


def encode_op(codec: IndexCode | ValueCode):
    """The op is called as the codec is, in snake case."""
    return ops.codec(re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", codec.name).lower())[0]


def encode_index_with_ops(
    codec: IndexCode, size: int, indices: np.ndarray, seed: int = 0, step: int = 0, segment: int = 0, rows: int = 1, columns: int = 1
) -> bytes:
    assert segment == 0
    shape = {"dimensions": [[rows, columns]]} if codec is ADAPTIVE else {}
    code, _ = encode_op(codec)(indices=indices.astype(np.int32), splits=[0, len(indices)], sizes=[size], seed=seed, step=step, **shape)
    return code.numpy().tobytes()


def encode_value_with_ops(codec: ValueCode, values: np.ndarray, **options) -> bytes:
    return sent_by_ops(codec, values, **options)[0]


def sent_by_ops(codec: ValueCode, values: np.ndarray, seed: int = 0, step: int = 0, **options) -> tuple[bytes, np.ndarray]:
    """The code, and what the op says that it decodes to."""
    code, _, decoded = encode_op(codec)(values, [0, len(values)], seed, step, **options)
    return code.numpy().tobytes(), decoded.numpy()


def check_refuses_raw(decoder: Reference | Ops, codec: IndexCode, size: int, indices: list[int]) -> None:
    """Raw indices are refused where the coded form is shorter, as it must be here."""
    raw = write_raw(size, indices)
    assert len(reference.encode_index(codec, size, np.array(indices))) < len(raw)
    with decoder.refuses("raw only where the coded form is not shorter"):
        decoder.decode_index(codec, size, len(indices), raw)
