"""The two decoders of docs/format.md under one interface: the reference, and the C++ ops; and what both are tried on."""

from __future__ import annotations

import re
from itertools import pairwise

import format_reference as reference
import numpy as np
import pytest
from format_reference import (
    ADAPTIVE,
    BFLOAT16,
    BITMAP,
    DELTA_HUFFMAN,
    ELIAS_FANO,
    FIXED_WIDTH,
    FLOAT16,
    FLOAT32,
    HUFFMAN,
    LOG_QUANTIZER,
    RICE,
    RUN_LENGTH,
    SEEDED,
    SKETCH_ML,
    THREE_LC,
    FormatError,
)
from hypothesis import strategies as st


class Reference:
    def refuses(self, name: str):
        return pytest.raises(FormatError, match=f"^{re.escape(name)}$")

    def decode_index(self, codec: int, size: int, count: int, code: bytes, **place) -> np.ndarray:
        return reference.decode_index(codec, size, count, code, **place)

    def decode_value(self, codec: int, number: int, code: bytes) -> np.ndarray:
        return reference.decode_value(codec, number, code)

    def decode_frames(self, data: bytes, sizes: list[int], widths: list[int] | None = None) -> list[tuple]:
        return [(segment.indices, segment.values) for frame in reference.split_frames(data, sizes) for segment in frame.segments]


class Ops:
    """The ops name other errors than the reference, so only their kind is held: DataLoss."""

    def refuses(self, name: str):
        import tensorflow as tf

        return pytest.raises(tf.errors.DataLossError)

    def decode_index(self, codec: int, size: int, count: int, code: bytes, **place) -> np.ndarray:
        place.pop("segment", None)
        frame = reference.write_frame(codec, FLOAT32, [(size, count, 1, code, bytes(4 * count))], **place)
        return decode_with_ops(frame, [size], [1], codec, FLOAT32)[0][0]

    def decode_value(self, codec: int, number: int, code: bytes) -> np.ndarray:
        frame = reference.write_frame(FIXED_WIDTH, codec, [(number, number, 1, b"", code)])
        return decode_with_ops(frame, [number], [1], FIXED_WIDTH, codec)[0][1]

    def decode_frames(self, data: bytes, sizes: list[int], widths: list[int] | None = None) -> list[tuple]:
        return decode_with_ops(data, sizes, widths or [1] * len(sizes), RICE, FLOAT32)


def decode_with_ops(data: bytes, sizes: list[int], widths: list[int], index_codec: int, value_codec: int) -> list[tuple]:
    """(indices, values) of each segment of each frame. The fingerprint is taken from the first frame."""
    from deepreduce_tf import ops

    payload = np.frombuffer(data, np.int64)
    fingerprint = payload[3] if len(payload) > 3 else 0
    indices, values, splits = ops.frame_decode(
        payload=payload,
        sizes=np.array(sizes, np.int64),
        fingerprint=fingerprint,
        widths=np.array(widths, np.int64),
        index_codec=index_codec,
        value_codec=value_codec,
    )
    indices, values, splits = indices.numpy(), values.numpy(), splits.numpy()
    segments, value_at = [], 0
    for j, (begin, end) in enumerate(pairwise(splits)):
        number = (end - begin) * widths[j % len(sizes)]
        segments.append((indices[begin:end], values[value_at : value_at + number]))
        value_at += number
    assert value_at == len(values)
    return segments


REFERENCE, OPS = Reference(), Ops()


OPS_NAMES = {
    SEEDED: "seeded_support",
    FIXED_WIDTH: "fixed_width",
    BITMAP: "bitmap",
    RICE: "rice",
    ELIAS_FANO: "elias_fano",
    RUN_LENGTH: "run_length",
    HUFFMAN: "huffman",
    DELTA_HUFFMAN: "delta_huffman",
    ADAPTIVE: "adaptive",
}
VALUE_OPS_NAMES = {
    FLOAT32: "float32",
    FLOAT16: "float16",
    BFLOAT16: "b_float16",
    LOG_QUANTIZER: "log_quantizer",
    SKETCH_ML: "sketch_ml",
    THREE_LC: "three_lc",
}


def encode_index_with_ops(
    codec: int, size: int, indices: np.ndarray, seed: int = 0, step: int = 0, segment: int = 0, rows: int = 1, columns: int = 1
) -> bytes:
    from deepreduce_tf import ops

    assert segment == 0
    encode, _ = ops.codec(OPS_NAMES[codec])
    shape = {"dimensions": [[rows, columns]]} if codec == ADAPTIVE else {}
    code, _ = encode(indices=indices.astype(np.int32), splits=[0, len(indices)], sizes=[size], seed=seed, step=step, **shape)
    return code.numpy().tobytes()


def encode_bloom_filter_with_ops(
    size: int, indices: np.ndarray, fpr: float, policy: str, seed: int = 0, step: int = 0, segment: int = 0
) -> tuple[bytes, np.ndarray]:
    from deepreduce_tf import ops

    assert segment == 0
    encode, _ = ops.codec("bloom_filter")
    code, _, support, _ = encode(indices.astype(np.int32), [0, len(indices)], [size], seed, step, fpr=fpr, policy=policy)
    return code.numpy().tobytes(), support.numpy()


def encode_value_with_ops(codec: int, values: np.ndarray, **options) -> bytes:
    from deepreduce_tf import ops

    encode, _ = ops.codec(VALUE_OPS_NAMES[codec])
    code, _, _ = encode(values=values, splits=[0, len(values)], seed=0, step=0, **options)
    return code.numpy().tobytes()


def same_bits(a: np.ndarray, b: np.ndarray) -> bool:
    return a.dtype == b.dtype == np.float32 and np.array_equal(a.view(np.uint32), b.view(np.uint32))


float32s = st.floats(width=32, allow_nan=False, allow_infinity=False)


@st.composite
def supports(draw) -> tuple[int, np.ndarray]:
    size = draw(st.integers(0, 300))
    kept = draw(st.sets(st.integers(0, size - 1))) if size else set()
    if draw(st.booleans()):
        kept = set(range(size)) - kept
    return size, np.array(sorted(kept), np.int64)


values_arrays = st.lists(float32s, max_size=80).map(lambda numbers: np.array(numbers, np.float32))


def spread(seed: int, number: int, zeros: float) -> np.ndarray:
    random = np.random.default_rng(seed)
    return (random.standard_normal(number) * (random.random(number) >= zeros)).astype(np.float32)


spread_arrays = st.builds(spread, st.integers(0, 2**31), st.integers(1, 3000), st.sampled_from([0, 0.3, 0.99]))
