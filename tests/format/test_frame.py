"""The frame: its example, round trips, bytes that no encoder writes, and any bytes at all."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from format import reference
from format.arrays import same_bits, spread, supports
from format.decoders import REFERENCE, decode_with_ops
from format.example_files import floats, integers, options_of, parametrize
from format.reference import FormatError
from format.reference.deflate import DEFLATE
from format.reference.float32 import FLOAT32
from format.reference.frame import APPLICATION
from format.reference.rice import RICE
from format.reference.seeded_support import SEEDED_SUPPORT, seeded_support

INDEX_CODES = [codec for codec in sorted(reference.INDEX_CODES.values(), key=lambda codec: codec.id) if codec.encode]
VALUE_CODES = sorted(reference.VALUE_CODES.values(), key=lambda codec: codec.id)
# The example


def stated_segments(example: dict) -> list[tuple]:
    return [(int(s["size"]), int(s["width"]), integers(s["indices"]), floats(s["values"])) for s in example["segment"]]


@parametrize("frame")
def test_frame_example_decodes_to_its_content(example):
    frame = reference.decode_frame(example["code"])
    assert (frame.index_codec, frame.value_codec) == (int(example["index codec"]), int(example["value codec"]))
    assert (frame.seed, frame.step, frame.fingerprint) == (int(example["seed"]), int(example["step"]), int(example["fingerprint"], 16))
    assert frame.length == len(example["code"])
    assert len(frame.segments) == len(example["segment"])
    for segment, (size, width, indices, values) in zip(frame.segments, stated_segments(example), strict=True):
        assert (segment.size, segment.count, segment.width) == (size, len(indices), width)
        np.testing.assert_array_equal(segment.indices, indices)
        assert same_bits(segment.values, values)


def codecs_of(example: dict) -> tuple:
    return reference.INDEX_CODES[int(example["index codec"])], reference.VALUE_CODES[int(example["value codec"])]


@parametrize("frame")
def test_frame_example_decodes_with_the_ops(example):
    stated = stated_segments(example)
    sizes, widths = [segment[0] for segment in stated], [segment[1] for segment in stated]
    decoded = decode_with_ops(example["code"] * 2, sizes, widths, *codecs_of(example))
    for (indices, values), (_, _, stated_indices, stated_values) in zip(decoded, stated * 2, strict=True):
        np.testing.assert_array_equal(indices, stated_indices)
        assert same_bits(values, stated_values)


@parametrize("frame")
def test_frame_example_is_what_the_encoder_writes(example):
    header = (int(example["seed"]), int(example["step"]), int(example["fingerprint"], 16))
    data = reference.encode_frame(*codecs_of(example), stated_segments(example), *header, **options_of(example))
    assert data.hex(" ") == example["code"].hex(" ")


# Round trips


@given(
    st.lists(supports(), max_size=4),
    st.sampled_from([codec for codec in INDEX_CODES if codec.has_raw]),
    st.sampled_from([FLOAT32, DEFLATE]),
    st.integers(1, 3),
)
def test_a_frame_comes_back_and_encodes_to_the_same_bytes(chosen, index_codec, value_codec, width):
    segments = [(size, width, indices, np.arange(len(indices) * width, dtype=np.float32)) for size, indices in chosen]
    data = reference.encode_frame(index_codec, value_codec, segments, 3, 4, 5)
    frame = reference.decode_frame(data, [size for size, *_ in segments])
    assert len(data) % 8 == 0
    again = [(s.size, s.width, s.indices, s.values) for s in frame.segments]
    assert reference.encode_frame(index_codec, value_codec, again, frame.seed, frame.step, frame.fingerprint) == data


def test_frames_lie_end_to_end():
    frames = [reference.encode_frame(RICE, FLOAT32, [(99, 1, np.arange(n), np.arange(n, dtype=np.float32))], step=n) for n in range(5)]
    assert [(frame.step, frame.segments[0].count) for frame in reference.split_frames(b"".join(frames))] == [(n, n) for n in range(5)]
    assert reference.split_frames(b"") == []


@pytest.mark.parametrize("codec", VALUE_CODES)
def test_refuses_a_value_code_where_nothing_is_kept(codec):
    with REFERENCE.refuses("value code length"):
        reference.decode_frame(reference.write_frame(RICE.id, codec.id, [(10, 0, 1, b"", b"\0")]))


def test_a_stage_of_the_application_keeps_its_own_bytes():
    frame = reference.decode_frame(reference.write_frame(APPLICATION, APPLICATION, [(10, 3, 1, b"any", b"bytes, also many more than raw")]))
    segment = frame.segments[0]
    assert (segment.index_code, segment.value_code) == (b"any", b"bytes, also many more than raw")
    assert segment.indices is None and segment.values is None
    nothing_kept = reference.decode_frame(reference.write_frame(APPLICATION, APPLICATION, [(10, 0, 1, b"a", b"b")])).segments[0]
    assert (nothing_kept.index_code, nothing_kept.value_code) == (b"a", b"b")


# Bytes that no encoder writes


def frame_with(offset: int = 0, new: bytes = b"") -> bytes:
    data = bytearray(reference.write_frame(RICE.id, FLOAT32.id, [(100, 1, 1, b"\x07", bytes(4))]))
    data[offset : offset + len(new)] = new
    return bytes(data)


def frame_of_table(table: bytes) -> bytes:
    header = reference.write_frame(RICE.id, FLOAT32.id, [])
    return header[:8] + b"\x01" + header[9:] + table + bytes(-len(table) % 8)


@pytest.mark.parametrize(
    ("offset", "new", "name"),
    [
        (0, b"d", "magic"),
        (4, b"\2", "version"),
        (5, b"\x64", "index codec"),
        (6, b"\0", "value codec"),
        (6, b"\x63", "value codec"),
        (7, b"\1", "reserved byte"),
    ],
)
def test_refuses_a_header_of_another_format(decoder, offset, new, name):
    decoder.decode_frames(frame_with(), [100])
    with decoder.refuses(name):
        decoder.decode_frames(frame_with(offset, new), [100])


@pytest.mark.parametrize(
    ("length", "name"), [(8, "truncated header"), (24, "truncated header"), (32, "truncated table"), (40, "truncated frame")]
)
def test_refuses_a_frame_that_ends_early(decoder, length, name):
    with decoder.refuses(name):
        decoder.decode_frames(frame_with()[:length], [100])


def test_refuses_a_table_that_ends_within_a_number(decoder):
    with decoder.refuses("truncated table"):
        decoder.decode_frames(frame_of_table(b"\x85\x01\x80\x01\x01\x00\x80\x80"), [133])


def test_refuses_a_frame_that_ends_at_any_byte():
    for length in range(1, len(frame_with())):
        with pytest.raises(FormatError, match="truncated"):
            reference.decode_frame(frame_with()[:length])


def test_refuses_more_segments_than_there_are_rows():
    with REFERENCE.refuses("truncated table"):
        reference.decode_frame(frame_with(8, b"\xff\xff\xff\xff"))


def test_refuses_bytes_after_the_frame(decoder):
    with decoder.refuses("truncated header"):
        decoder.decode_frames(frame_with() + bytes(8), [100])
    with decoder.refuses("magic"):
        decoder.decode_frames(frame_with() + bytes(48), [100])
    with REFERENCE.refuses("bytes after the frame"):
        reference.decode_frame(frame_with() + frame_with())


def test_refuses_padding_that_is_not_zero(decoder):
    with decoder.refuses("padding"):
        decoder.decode_frames(frame_with()[:-1] + b"\1", [100])


def test_refuses_a_size_that_is_not_this_ranks(decoder):
    with decoder.refuses("size of this rank"):
        decoder.decode_frames(frame_with(), [101])
    with decoder.refuses("number of segments"):
        decoder.decode_frames(frame_with(), [100, 100])


@pytest.mark.parametrize(
    ("table", "size", "width", "name"),
    [
        (b"\x80\x00\x00\x01\x00\x00", 0, 1, "number longer than needed"),
        (b"\x81\x80\x80\x80\x00\x00\x01\x00\x00", 1, 1, "number longer than needed"),
        (b"\x05\x00\x01\x80\x80\x80\x80\x10\x00", 5, 1, "number above 2^32 - 1"),
        (b"\x05\x00\x01\x80\x80\x80\x80\x80\x00\x00", 5, 1, "number above five bytes"),
        (b"\x80\x80\x80\x80\x08\x00\x01\x00\x00", 2**31 - 1, 1, "size"),
        (b"\x05\x06\x01\x00\x00", 5, 1, "count"),
        (b"\x05\x00\x00\x00\x00", 5, 1, "width"),
        (b"\x02\x02\x80\x80\x80\x80\x04\x00\x00", 2, 2**30, "values of a segment"),
    ],
)
def test_refuses_a_row_outside_the_limits(decoder, table, size, width, name):
    with decoder.refuses(name):
        decoder.decode_frames(frame_of_table(table), [size], [width])


def test_takes_a_row_at_the_limits():
    segment = reference.decode_frame(frame_of_table(b"\xff\xff\xff\xff\x07\x00\xff\xff\xff\xff\x0f\x00\x00")).segments[0]
    assert (segment.size, segment.count, segment.width) == (2**31 - 1, 0, 2**32 - 1)


# Any bytes
SOME_SIZES = [60, 200, 7]


def some_frame(index_codec: int, value_codec: int, seed: int) -> bytes:
    random = np.random.default_rng(seed)
    segments = []
    for size in SOME_SIZES:
        indices = np.flatnonzero(random.random(size) < random.choice([0.03, 0.3, 0.8]))
        if index_codec is SEEDED_SUPPORT:
            indices = seeded_support(size, len(indices), seed, 1, len(segments))
        segments.append((size, 1, indices, spread(seed, len(indices), zeros=0.2 * (seed % 2))))
    return reference.encode_frame(index_codec, value_codec, segments, seed, 1, 2)


@settings(max_examples=300)
@given(
    st.sampled_from(INDEX_CODES),
    st.sampled_from(VALUE_CODES),
    st.integers(0, 50),
    st.lists(st.tuples(st.integers(0, 2000), st.integers(0, 7)), min_size=1, max_size=3),
)
def test_a_changed_frame_is_refused_or_decodes_within_its_table(index_codec, value_codec, seed, flips):
    data = bytearray(some_frame(index_codec, value_codec, seed))
    for position, bit in flips:
        data[position % len(data)] ^= 1 << bit
    try:
        frame = reference.decode_frame(bytes(data), SOME_SIZES)
    except FormatError:
        return
    for segment, size in zip(frame.segments, SOME_SIZES, strict=True):
        assert segment.indices is None or (len(segment.indices) == segment.count and (segment.count == 0 or segment.indices[-1] < size))
        assert segment.values is None or len(segment.values) == segment.count * segment.width


@given(st.binary(max_size=200))
def test_any_bytes_are_a_frame_or_a_format_error(data):
    for content in (data, frame_with()[:32] + data):
        try:
            reference.split_frames(content, [100])
        except FormatError:
            continue


@settings(max_examples=500)
@given(
    st.sampled_from(INDEX_CODES),
    st.sampled_from(VALUE_CODES),
    st.integers(0, 50),
    st.lists(st.tuples(st.integers(0, 2000), st.integers(0, 7)), max_size=2),
)
def test_ops_and_reference_agree_on_a_changed_frame(index_codec, value_codec, seed, flips):
    data = bytearray(some_frame(index_codec, value_codec, seed))
    for position, bit in flips:
        data[8 + position % (len(data) - 8)] ^= 1 << bit
    widths = [1] * len(SOME_SIZES)
    try:
        expected = reference.decode_frame(bytes(data), SOME_SIZES)
    except FormatError:
        expected = None
    if expected is None or [segment.width for segment in expected.segments] != widths:
        with pytest.raises(tf.errors.DataLossError):
            decode_with_ops(bytes(data), SOME_SIZES, widths, index_codec, value_codec)
        return
    decoded = decode_with_ops(bytes(data), SOME_SIZES, widths, index_codec, value_codec)
    for segment, (indices, values) in zip(expected.segments, decoded, strict=True):
        np.testing.assert_array_equal(indices, segment.indices)
        np.testing.assert_array_equal(values.view(np.uint32), segment.values.view(np.uint32))
