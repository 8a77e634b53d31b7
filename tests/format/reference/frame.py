"""The frame: header, table, codes and padding."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from format.reference.bits import MAX_SIZE, read_leb128, require, write_leb128
from format.reference.index_codes import INDEX_CODES, IndexCode, decode_index, encode_index
from format.reference.value_codes import VALUE_CODES, ValueCode, decode_value, encode_value

MAGIC = b"DRTF"
VERSION = 1
HEADER = struct.Struct("<4sBBBBIIQQ")
APPLICATION = 255  # the id of an index or value codec that the application defines


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


def read_row(data: bytes, position: int) -> tuple[Row, int]:
    numbers = []
    for _ in range(5):
        number, position = read_leb128(data, position, "truncated table")
        numbers.append(number)
    row = Row(*numbers)
    require(row.size <= MAX_SIZE, "size")
    require(row.count <= row.size, "count")
    require(row.width >= 1, "width")
    require(row.count * row.width <= MAX_SIZE, "values of a segment")
    return row, position


def write_frame(index_codec: int, value_codec: int, rows: Sequence[tuple], seed: int = 0, step: int = 0, fingerprint: int = 0) -> bytes:
    """A frame of given ids of codecs and given codes; a row is (size, count, width, index code, value code)."""
    header = HEADER.pack(MAGIC, VERSION, index_codec, value_codec, 0, len(rows), seed, step, fingerprint)
    table = b"".join(
        write_leb128(number) for size, count, width, index, value in rows for number in (size, count, width, len(index), len(value))
    )
    frame = header + table + b"".join(row[3] for row in rows) + b"".join(row[4] for row in rows)
    return frame + bytes(-len(frame) % 8)


def encode_frame(
    index_codec: IndexCode, value_codec: ValueCode, segments: Sequence[tuple], seed: int = 0, step: int = 0, fingerprint: int = 0, **options
) -> bytes:
    """A frame of given content; a segment is (size, width, indices, values). Options are those of encode_value."""
    rows = []
    for j, (size, width, indices, values) in enumerate(segments):
        index = encode_index(index_codec, size, indices, seed, step, j)
        rows.append((size, len(indices), width, index, encode_value(value_codec, values, **options)))
    return write_frame(index_codec.id, value_codec.id, rows, seed, step, fingerprint)


def read_frame(data: bytes, start: int = 0, sizes: Sequence[int] | None = None) -> Frame:
    """The frame that begins at `start`. With `sizes`, those of this rank, nothing larger is ever allocated."""
    require(len(data) - start >= HEADER.size, "truncated header")
    magic, version, index_codec, value_codec, reserved, number, seed, step, fingerprint = HEADER.unpack_from(data, start)
    require(magic == MAGIC, "magic")
    require(version == VERSION, "version")
    require(index_codec in INDEX_CODES or index_codec == APPLICATION, "index codec")
    require(value_codec in VALUE_CODES or value_codec == APPLICATION, "value codec")
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
    if frame.value_codec != APPLICATION:
        values = decode_value(VALUE_CODES[frame.value_codec], number, value_code)
    if frame.index_codec != APPLICATION:
        indices = decode_index(INDEX_CODES[frame.index_codec], row.size, row.count, index_code, frame.seed, frame.step, j)
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
