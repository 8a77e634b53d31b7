"""docs/format.md: its worked examples, and every rule of it, held by the second implementation in format_reference.py."""

from __future__ import annotations

import re
import zlib
from pathlib import Path

import format_reference as reference
import numpy as np
import pytest
from format_decoders import (
    OPS,
    REFERENCE,
    decode_with_ops,
    encode_bloom_filter_with_ops,
    encode_index_with_ops,
    encode_value_with_ops,
    same_bits,
    spread,
    spread_arrays,
    supports,
    values_arrays,
)
from format_reference import (
    ADAPTIVE,
    BFLOAT16,
    BITMAP,
    BLOOM_FILTER,
    DEFLATE,
    DELTA_HUFFMAN,
    DOUBLE_EXP_FIT,
    ELIAS_FANO,
    FIXED_WIDTH,
    FLOAT16,
    FLOAT32,
    HUFFMAN,
    LOG_QUANTIZER,
    NATURAL,
    POLY_FIT,
    QSGD,
    RICE,
    RUN_LENGTH,
    SEEDED,
    SKETCH_ML,
    TERN_GRAD,
    THREE_LC,
    FormatError,
)
from hypothesis import given, settings
from hypothesis import strategies as st

PAGE = Path(__file__).parent.parent / "docs" / "format.md"


# The worked examples


def parse_example(block: str) -> dict:
    example: dict = {"code": b"", "segment": []}
    for line in block.strip().splitlines():
        key, _, text = line.split("#")[0].partition(":")
        text = text.strip()
        if key == "code":
            example["code"] += bytes.fromhex(text)
        elif key == "segment" and "," in text:
            example["segment"].append(dict(part.strip().split(" ", 1) for part in text.split(",")))
        else:
            example[key] = text
    return example


def integers(text: str) -> np.ndarray:
    return np.array(text.split(), np.int64)


def floats(text: str) -> np.ndarray:
    return np.array(text.split(), np.float32)


def options_of(example: dict) -> dict:
    return {"bits": int(example["bits"])} if "bits" in example else {}


def place_of(example: dict, *names: str) -> dict:
    return {name: int(example[name]) for name in names if example.get(name)}


EXAMPLES = [parse_example(block) for block in re.findall(r"```example\n(.*?)```", PAGE.read_text(), re.DOTALL)]


def examples(kind: str, codecs: list[int] | None = None):
    chosen = [example for example in EXAMPLES if example["kind"] == kind and (codecs is None or int(example["codec"]) in codecs)]
    return pytest.mark.parametrize("example", chosen, ids=[example["name"] for example in chosen])


def test_the_page_has_an_example_of_every_codec():
    for kind, codecs in (("index", reference.INDEX_CODECS), ("value", reference.VALUE_CODECS)):
        shown = {int(example["codec"]) for example in EXAMPLES if example["kind"] == kind}
        assert shown == set(codecs) - {reference.APPLICATION}, f"docs/format.md lacks a worked example of an {kind} codec"
    assert any(example["kind"] == "frame" for example in EXAMPLES)


@examples("index")
def test_index_example_decodes_to_its_support(decoder, example):
    indices = integers(example.get("decoded", example["indices"]))
    place = place_of(example, "seed", "step", "segment")
    decoded = decoder.decode_index(int(example["codec"]), int(example["size"]), len(indices), example["code"], **place)
    np.testing.assert_array_equal(decoded, indices)


@examples("index", [codec for codec in reference.INDEX_CODECS if codec != BLOOM_FILTER])
@pytest.mark.parametrize("encode", [reference.encode_index, encode_index_with_ops])
def test_index_example_is_what_the_encoder_writes(encode, example):
    indices = integers(example["indices"])
    place = place_of(example, "seed", "step", "segment", "rows", "columns")
    code = encode(int(example["codec"]), int(example["size"]), indices, **place)
    assert code.hex(" ") == example["code"].hex(" ")


@examples("index", [BLOOM_FILTER])
@pytest.mark.parametrize("encode", [reference.encode_bloom_filter, encode_bloom_filter_with_ops])
def test_bloom_filter_example_is_what_the_encoder_writes(encode, example):
    options = {"fpr": float(example["fpr"]), "policy": example["policy"]}
    code, support = encode(int(example["size"]), integers(example["indices"]), **options, **place_of(example, "seed", "step", "segment"))
    assert code.hex(" ") == example["code"].hex(" ")
    np.testing.assert_array_equal(support, integers(example["decoded"]))


@examples("value")
def test_value_example_decodes_to_its_values(decoder, example):
    expected = floats(example.get("decoded", example["values"]))
    assert same_bits(decoder.decode_value(int(example["codec"]), len(expected), example["code"]), expected)


@examples("value", [FLOAT32, FLOAT16, BFLOAT16, LOG_QUANTIZER, SKETCH_ML, THREE_LC])
@pytest.mark.parametrize("encode", [reference.encode_value, encode_value_with_ops])
def test_value_example_is_what_the_encoder_writes(encode, example):
    codec, values = int(example["codec"]), floats(example["values"])
    assert encode(codec, values, **options_of(example)).hex(" ") == example["code"].hex(" ")


@examples("value", [QSGD, TERN_GRAD, NATURAL])
def test_an_example_of_random_rounding_is_what_an_encoder_writes_that_rounds_to_nearest(example):
    code = reference.encode_value(int(example["codec"]), floats(example["values"]), **options_of(example), noise=0.5)
    assert code.hex(" ") == example["code"].hex(" ")


def stated_segments(example: dict) -> list[tuple]:
    return [(int(s["size"]), int(s["width"]), integers(s["indices"]), floats(s["values"])) for s in example["segment"]]


@examples("frame")
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


@examples("frame")
def test_frame_example_decodes_with_the_ops(example):
    stated = stated_segments(example)
    sizes, widths = [segment[0] for segment in stated], [segment[1] for segment in stated]
    decoded = decode_with_ops(example["code"] * 2, sizes, widths, int(example["index codec"]), int(example["value codec"]))
    for (indices, values), (_, _, stated_indices, stated_values) in zip(decoded, stated * 2, strict=True):
        np.testing.assert_array_equal(indices, stated_indices)
        assert same_bits(values, stated_values)


@examples("frame")
def test_frame_example_is_what_the_encoder_writes(example):
    header = (int(example["seed"]), int(example["step"]), int(example["fingerprint"], 16))
    codecs = (int(example["index codec"]), int(example["value codec"]))
    assert reference.encode_frame(*codecs, stated_segments(example), *header, **options_of(example)).hex(" ") == example["code"].hex(" ")


# Round trips of the reference

EXPLICIT = (FIXED_WIDTH, BITMAP, RICE, ELIAS_FANO, RUN_LENGTH, ADAPTIVE, HUFFMAN, DELTA_HUFFMAN)
CODECS_OF_INDICES = (SEEDED, *EXPLICIT)
CODED_VALUES = (FLOAT16, BFLOAT16, QSGD, LOG_QUANTIZER, DEFLATE, TERN_GRAD, NATURAL, THREE_LC, POLY_FIT, DOUBLE_EXP_FIT, SKETCH_ML)
CODECS_OF_VALUES = (FLOAT32, *CODED_VALUES)
LOSSLESS = (FLOAT32, DEFLATE)


@given(supports(), st.sampled_from(EXPLICIT))
def test_a_support_comes_back_and_is_never_longer_than_raw(support, codec):
    size, indices = support
    code = reference.encode_index(codec, size, indices)
    assert len(code) <= reference.raw_index_length(size, len(indices))
    np.testing.assert_array_equal(reference.decode_index(codec, size, len(indices), code), indices)


@given(st.integers(1, 500), st.data())
def test_a_seeded_support_has_its_count_and_needs_no_bytes(size, data):
    count = data.draw(st.integers(0, size))
    indices = reference.decode_index(SEEDED, size, count, b"", 1, 2, 3)
    assert len(indices) == count and (np.diff(indices) > 0).all() and (count == 0 or indices[-1] < size)
    assert reference.encode_index(SEEDED, size, indices, 1, 2, 3) == b""


def test_seeded_draws_fall_evenly():
    hits = sum(np.bincount(reference.seeded_support(20, 5, 9, step, 0), minlength=20) for step in range(4000))
    assert hits.sum() == 20000 and abs(hits - 1000).max() < 5 * np.sqrt(1000)


@given(st.lists(st.integers(0, 2**31 - 2), min_size=1, max_size=30).map(lambda gaps: np.array(gaps, np.int64)))
def test_the_bits_of_rice_are_convex_in_its_parameter(gaps):
    bits = [reference.rice_bits(gaps, parameter) for parameter in range(40)]
    assert (np.diff(bits, n=2) >= 0).all()
    assert min(bits) == min(bits[:31]), "a parameter above 30 is never needed"


@given(values_arrays | spread_arrays, st.sampled_from(LOSSLESS))
def test_lossless_values_come_back(values, codec):
    code = reference.encode_value(codec, values)
    assert len(code) <= 4 * len(values)
    assert same_bits(reference.decode_value(codec, len(values), code), values)


@given(values_arrays | spread_arrays, st.sampled_from([(FLOAT16, 2.0**-11, 2.0**-25), (BFLOAT16, 2.0**-8, 2.0**-134)]))
def test_half_floats_come_back_within_half_a_last_place(values, codec):
    name, relative, absolute = codec
    decoded = reference.decode_value(name, len(values), reference.encode_value(name, values))
    exact = values.astype(np.float64)
    assert (np.abs(decoded - exact) <= np.maximum(np.abs(exact) * relative, absolute)).all()


@given(values_arrays | spread_arrays, st.integers(2, 8), st.floats(0, 0.999))
def test_qsgd_values_come_back_within_one_level(values, bits, noise):
    decoded = reference.decode_value(QSGD, len(values), reference.encode_value(QSGD, values, bits=bits, noise=noise))
    for start in range(0, len(values), 512):
        group = values[start : start + 512].astype(np.float64)
        step = np.abs(group).max() / (2 ** (bits - 1) - 1)
        assert (np.abs(decoded[start : start + 512] - group) <= step * 1.000001 + 2.0**-100).all()


@given(values_arrays | spread_arrays, st.integers(2, 8))
def test_log_quantizer_keeps_signs_zeros_and_the_range_of_magnitudes(values, bits):
    code = reference.encode_value(LOG_QUANTIZER, values, bits=bits)
    decoded = reference.decode_value(LOG_QUANTIZER, len(values), code)
    if len(code) == 4 * len(values):
        return
    zero = np.abs(values) < np.float32(2.0**-126)
    assert np.array_equal(decoded == 0, zero) and np.array_equal(np.signbit(decoded)[~zero], np.signbit(values)[~zero])
    if not zero.all():
        magnitudes = np.abs(values[~zero])
        assert np.abs(decoded[~zero]).min() >= magnitudes.min() and np.abs(decoded[~zero]).max() <= magnitudes.max()


@given(spread_arrays)
def test_log_quantizer_of_8_bits_stays_within_its_bin(values):
    code = reference.encode_value(LOG_QUANTIZER, values, bits=8)
    present = np.abs(values[values != 0]).view(np.uint32).astype(np.int64)
    if len(code) == 4 * len(values) or len(present) == 0:
        return
    decoded = reference.decode_value(LOG_QUANTIZER, len(values), code)
    bins = reference.log_bins(8, bool((values == 0).any()))
    distance = np.abs(decoded[values != 0]).view(np.uint32).astype(np.int64) - present
    assert np.abs(distance).max() <= (present.max() - present.min()) / bins + 1


@given(st.sampled_from(CODECS_OF_VALUES), st.sampled_from([np.nan, np.inf, -np.inf]), st.integers(0, 39))
def test_a_segment_with_a_value_that_is_not_finite_is_raw(codec, value, place):
    values = np.ones(40, np.float32)
    values[place] = value
    code = reference.encode_value(codec, values)
    assert code == values.tobytes() and same_bits(reference.decode_value(codec, 40, code), values)


@given(st.lists(supports(), max_size=4), st.sampled_from(EXPLICIT), st.sampled_from(LOSSLESS), st.integers(1, 3))
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


def test_refuses_a_value_code_where_nothing_is_kept():
    for codec in reference.VALUE_CODECS:
        with REFERENCE.refuses("value code length"):
            reference.decode_frame(reference.write_frame(RICE, codec, [(10, 0, 1, b"", b"\0")]))


def test_a_stage_of_the_application_keeps_its_own_bytes():
    frame = reference.decode_frame(reference.write_frame(255, 255, [(10, 3, 1, b"any", b"bytes, also many more than raw")]))
    segment = frame.segments[0]
    assert (segment.index_code, segment.value_code) == (b"any", b"bytes, also many more than raw")
    assert segment.indices is None and segment.values is None


# Bytes that no encoder writes: the frame


def frame_with(offset: int = 0, new: bytes = b"") -> bytes:
    data = bytearray(reference.write_frame(RICE, FLOAT32, [(100, 1, 1, b"\x07", bytes(4))]))
    data[offset : offset + len(new)] = new
    return bytes(data)


def frame_of_table(table: bytes) -> bytes:
    header = reference.write_frame(RICE, FLOAT32, [])
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


# Bytes that no encoder writes: index codes


@pytest.mark.parametrize("codec", [*CODECS_OF_INDICES, BLOOM_FILTER])
@pytest.mark.parametrize("count", [0, 9])
def test_refuses_a_code_where_none_or_all_are_kept(decoder, codec, count):
    assert len(decoder.decode_index(codec, 9, count, b"")) == count
    with decoder.refuses("index code length"):
        decoder.decode_index(codec, 9, count, b"\0")


@pytest.mark.parametrize("codec", CODECS_OF_INDICES)
def test_refuses_an_index_code_longer_than_raw(decoder, codec):
    with decoder.refuses("index code length"):
        decoder.decode_index(codec, 100, 3, bytes(4))


def test_refuses_raw_indices_where_the_support_is_seeded(decoder):
    for indices in (reference.seeded_support(20, 4, 0, 0, 0), np.arange(4)):
        with decoder.refuses("index code length"):
            decoder.decode_index(SEEDED, 20, 4, reference.pack_bits(indices, 5))


def test_the_reference_codes_no_other_support_than_the_seeded_one():
    with pytest.raises(ValueError, match="seeded support"):
        reference.encode_index(SEEDED, 20, np.arange(4))


@pytest.mark.parametrize(
    ("codec", "code"),
    [
        *(
            (SEEDED, b"\0"),
            (FIXED_WIDTH, b""),
            (FIXED_WIDTH, b"\0\0"),
            (BITMAP, b"\1\2"),
            (RICE, b""),
            (ELIAS_FANO, b""),
            (ELIAS_FANO, b"\1\2"),
        ),
        *((HUFFMAN, b""), (DELTA_HUFFMAN, b""), (ADAPTIVE, b"")),
    ],
)
def test_refuses_an_index_code_of_a_length_the_codec_never_has(decoder, codec, code):
    with decoder.refuses("index code length"):
        decoder.decode_index(codec, 100, 3, code)


@pytest.mark.parametrize("indices", [[3, 3, 64], [17, 3, 64], [3, 64, 17]])
def test_refuses_raw_indices_that_do_not_ascend(decoder, indices):
    with decoder.refuses("ascending indices"):
        decoder.decode_index(FIXED_WIDTH, 100, 3, reference.pack_bits(indices, 7))


def test_refuses_a_raw_index_that_is_not_below_size(decoder):
    with decoder.refuses("index below size"):
        decoder.decode_index(FIXED_WIDTH, 100, 3, reference.pack_bits([3, 17, 100], 7))


@pytest.mark.parametrize(
    ("codec", "size", "count", "code"),
    [
        (FIXED_WIDTH, 100, 3, b"\x83\x08\x90"),
        (BITMAP, 20, 6, b"\x8d\x08\x18"),
        (RICE, 40, 37, b"\x43\x99\x64"),
        (ELIAS_FANO, 100, 6, b"\x4d\x55\xc4\x6d\x8a"),
        (RUN_LENGTH, 20, 17, b"\x91\x0e"),
        (HUFFMAN, 40, 37, b"\x13\x46\xa4\x15"),
        (DELTA_HUFFMAN, 5000, 2, b"\x2a\x28\x80"),
    ],
)
def test_refuses_unused_bits_of_an_index_code_that_are_set(decoder, codec, size, count, code):
    with decoder.refuses("unused bits"):
        decoder.decode_index(codec, size, count, code)


@pytest.mark.parametrize(
    ("codec", "indices"),
    [
        *((BITMAP, [0, 2, 3, 7, 11, 19]), (RICE, [0, 1, 2, 3, 4]), (ELIAS_FANO, [0, 2, 3, 7, 11, 19]), (RUN_LENGTH, [0, 1, 2, 3, 4])),
        *((HUFFMAN, [0, 1, 2, 3, 4]), (DELTA_HUFFMAN, [*range(7), *range(8, 20)])),
    ],
)
def test_refuses_raw_indices_where_the_coded_form_is_shorter(decoder, codec, indices):
    raw = reference.pack_bits(indices, 5)
    assert len(reference.encode_index(codec, 20, np.array(indices))) < len(raw)
    with decoder.refuses("raw only where the coded form is not shorter"):
        decoder.decode_index(codec, 20, len(indices), raw)


@pytest.mark.parametrize("code", [b"\x8d\x08\x00", b"\x8d\x08\x09"])
def test_refuses_a_bitmap_with_another_number_of_bits_set(decoder, code):
    with decoder.refuses("bits set in the bitmap"):
        decoder.decode_index(BITMAP, 20, 6, code)


RICE_SUPPORT = np.array([5, 20, 28, 61, 70, 90])
RICE_GAPS = np.diff(RICE_SUPPORT, prepend=-1) - 1


@pytest.mark.parametrize("parameter", [2, 4, 5])
def test_refuses_a_rice_parameter_that_is_not_the_best(decoder, parameter):
    with decoder.refuses("best rice parameter"):
        decoder.decode_index(RICE, 4096, 6, reference.write_rice(RICE_GAPS, parameter, False))


def test_refuses_the_larger_of_two_equally_good_rice_parameters(decoder):
    gaps = np.array([1, 1, 1, 1])
    assert reference.rice_bits(gaps, 0) == reference.rice_bits(gaps, 1)
    assert decoder.decode_index(RICE, 4096, 4, reference.write_rice(gaps, 0, False)).tolist() == [1, 3, 5, 7]
    with decoder.refuses("best rice parameter"):
        decoder.decode_index(RICE, 4096, 4, reference.write_rice(gaps, 1, False))


def test_refuses_a_rice_parameter_above_30(decoder):
    with decoder.refuses("rice parameter"):
        decoder.decode_index(RICE, 2**31 - 1, 3, b"\x1f\1\0\0\0")


def test_refuses_the_reserved_bit_of_rice(decoder):
    with decoder.refuses("reserved bits"):
        decoder.decode_index(RICE, 4096, 6, b"\x83" + reference.write_rice(RICE_GAPS, 3, False)[1:])


def test_refuses_the_complement_of_a_sparse_support_and_the_support_itself_of_a_dense_one(decoder):
    with decoder.refuses("rice complement"):
        decoder.decode_index(RICE, 4096, 6, reference.write_rice(RICE_GAPS, 3, True))
    with decoder.refuses("rice complement"):
        decoder.decode_index(RICE, 40, 37, b"\x03\x99\x24")
    with decoder.refuses("rice complement"):
        decoder.decode_index(RICE, 40, 20, b"\x40\xff\xff\x0f")


def test_refuses_rice_gaps_that_end_early(decoder):
    code = reference.write_rice(RICE_GAPS, 3, False)
    for length in range(1, len(code)):
        with decoder.refuses("rice gaps end early"):
            decoder.decode_index(RICE, 4096, 6, code[:length])


def test_refuses_bytes_after_the_rice_gaps(decoder):
    with decoder.refuses("bytes after the rice gaps"):
        decoder.decode_index(RICE, 4096, 6, reference.write_rice(RICE_GAPS, 3, False) + b"\0")


def test_refuses_rice_gaps_that_leave_the_size(decoder):
    with decoder.refuses("index below size"):
        decoder.decode_index(RICE, 90, 6, reference.write_rice(RICE_GAPS, 3, False))


def elias_fano(places: list[int], unary: tuple[int, ...] = (0, 2, 3, 6, 8, 10)) -> bytes:
    """The code of six of a hundred places with these bits of the unary part set, and the low bits of these places."""
    low, length = reference.elias_fano_layout(100, 6)
    return reference.write_elias_fano(np.isin(np.arange(length), unary), np.array(places), low)


def test_takes_the_low_and_high_parts_of_elias_fano(decoder):
    assert decoder.decode_index(ELIAS_FANO, 100, 6, elias_fano([5, 20, 28, 61, 70, 90])).tolist() == [5, 20, 28, 61, 70, 90]


@pytest.mark.parametrize("unary", [(0, 2, 3, 6, 8), (0, 2, 3, 6, 8, 10, 11), ()])
def test_refuses_a_unary_part_with_another_number_of_bits_set(decoder, unary):
    with decoder.refuses("bits set in the unary part"):
        decoder.decode_index(ELIAS_FANO, 100, 6, elias_fano([5, 20, 28, 61, 70, 90], unary))


@pytest.mark.parametrize("places", [[5, 28, 20, 61, 70, 90], [5, 20, 20, 61, 70, 90]])
def test_refuses_low_bits_of_elias_fano_that_do_not_ascend(decoder, places):
    with decoder.refuses("ascending indices"):
        decoder.decode_index(ELIAS_FANO, 100, 6, elias_fano(places))


def test_refuses_a_place_of_elias_fano_that_is_not_below_size(decoder):
    assert decoder.decode_index(ELIAS_FANO, 100, 6, elias_fano([5, 20, 28, 61, 70, 99], (0, 2, 3, 6, 8, 11)))[-1] == 99
    with decoder.refuses("index below size"):
        decoder.decode_index(ELIAS_FANO, 100, 6, elias_fano([5, 20, 28, 61, 70, 100], (0, 2, 3, 6, 8, 11)))


RUNS = [6, 8, 17, 4, 6, 1]  # of 64 places 13 are kept


def test_refuses_runs_that_end_early(decoder):
    code = reference.write_gamma(RUNS)
    for length in range(len(code)):
        with decoder.refuses("runs end early"):
            decoder.decode_index(RUN_LENGTH, 64, 13, code[:length])


@pytest.mark.parametrize("runs", [[53], [6, 14], [6, 8, 47], [6, 8, 17, 6], [2**31 - 1], [2**31], [2**35]])
def test_refuses_runs_of_more_places_than_there_are(decoder, runs):
    assert len(decoder.decode_index(RUN_LENGTH, 64, 13, reference.write_gamma(RUNS))) == 13
    with decoder.refuses("runs within the size and the count"):
        decoder.decode_index(RUN_LENGTH, 64, 13, reference.write_gamma(runs))


@pytest.mark.parametrize("runs", [[*RUNS, 23], [52, 13]])
def test_refuses_the_last_run_and_bytes_after_the_runs(decoder, runs):
    with decoder.refuses("bytes after the runs"):
        decoder.decode_index(RUN_LENGTH, 64, 13, reference.write_gamma(runs))
    with decoder.refuses("bytes after the runs"):
        decoder.decode_index(RUN_LENGTH, 64, 13, reference.write_gamma(RUNS) + b"\0")


# Bytes that no encoder writes: value codes

SIX = np.array([1, -3, 0, 8, -1.5, 0], np.float32)


@pytest.mark.parametrize("codec", CODECS_OF_VALUES)
def test_refuses_a_value_code_of_a_length_the_codec_never_has(decoder, codec):
    with decoder.refuses("value code length"):
        decoder.decode_value(codec, 6, b"")
    with decoder.refuses("value code length"):
        decoder.decode_value(codec, 6, bytes(25))
    with decoder.refuses("value code length"):
        decoder.decode_value(codec, 0, b"\0")
    if codec not in (DEFLATE, POLY_FIT, DOUBLE_EXP_FIT, THREE_LC):  # their length is told by their bytes
        shorter = reference.encode_value(codec, SIX)[:-1]
        with decoder.refuses("value code length"):
            decoder.decode_value(codec, 6, shorter)


@pytest.mark.parametrize("code", [b"\x00\x7c\x00\x00", b"\x01\xfc\x00\x00"])
def test_refuses_a_float16_that_is_not_finite(decoder, code):
    with decoder.refuses("finite values"):
        decoder.decode_value(FLOAT16, 2, code)


@pytest.mark.parametrize("code", [b"\x80\x7f\x00\x00", b"\x81\xff\x00\x00"])
def test_refuses_a_bfloat16_that_is_not_finite(decoder, code):
    with decoder.refuses("finite values"):
        decoder.decode_value(BFLOAT16, 2, code)


def qsgd(first: int = 4, scale: float = 1.75, levels: tuple = (2, 9, 3, 0, 15, 4)) -> bytes:
    return bytes([first]) + np.float32(scale).tobytes() + reference.pack_bits(levels, 4)


def test_takes_qsgd_of_either_norm_and_any_scale_within_the_limits(decoder):
    for first in (4, 0x14):
        assert decoder.decode_value(QSGD, 6, qsgd(first)).tolist() == [0.5, -0.25, 0.75, 0, -1.75, 1]
    assert decoder.decode_value(QSGD, 6, qsgd(scale=0, levels=(0,) * 6)).tolist() == [0] * 6
    assert decoder.decode_value(QSGD, 6, qsgd(scale=2.0**-100))[4] == np.float32(-(2.0**-100))
    assert np.isfinite(decoder.decode_value(QSGD, 6, qsgd(scale=3.4028235e38))).all()


@pytest.mark.parametrize("first", [0x24, 0x44, 0x84])
def test_refuses_the_reserved_bits_of_qsgd(decoder, first):
    with decoder.refuses("reserved bits"):
        decoder.decode_value(QSGD, 6, qsgd(first))


@pytest.mark.parametrize("codec", [QSGD, LOG_QUANTIZER])
@pytest.mark.parametrize("first", [0, 1, 9, 15])
def test_refuses_levels_of_fewer_than_2_or_more_than_8_bits(decoder, codec, first):
    with decoder.refuses("bits of a level"):
        decoder.decode_value(codec, 6, qsgd(first))


@pytest.mark.parametrize("scale", [np.inf, np.nan, -1.75, -0.0])
def test_refuses_a_scale_that_is_not_finite_or_has_a_sign(decoder, scale):
    with decoder.refuses("scale finite and not negative"):
        decoder.decode_value(QSGD, 6, qsgd(scale=scale))


@pytest.mark.parametrize("scale", [2.0**-149, 2.0**-126, np.nextafter(np.float32(2.0**-100), np.float32(0))])
def test_refuses_a_scale_below_2_to_the_minus_100(decoder, scale):
    with decoder.refuses("scale 0 or at least 2^-100"):
        decoder.decode_value(QSGD, 6, qsgd(scale=scale))


def test_refuses_a_negative_zero_level_of_qsgd(decoder):
    with decoder.refuses("sign of a zero"):
        decoder.decode_value(QSGD, 6, qsgd(levels=(2, 9, 3, 8, 15, 4)))


def test_refuses_a_level_under_scale_0(decoder):
    with decoder.refuses("level under scale 0"):
        decoder.decode_value(QSGD, 6, qsgd(scale=0, levels=(0, 0, 1, 0, 0, 0)))


@pytest.mark.parametrize("codec", [QSGD, LOG_QUANTIZER])
def test_refuses_unused_bits_of_a_value_code_that_are_set(decoder, codec):
    code = reference.encode_value(codec, SIX, bits=3)
    with decoder.refuses("unused bits"):
        decoder.decode_value(codec, 6, code[:-1] + bytes([code[-1] | 0x80]))


def log_code(first: int = 0x23, numbers: tuple = (1, 8), levels: tuple = (1, 6, 0, 3, 5, 0)) -> bytes:
    return bytes([first]) + np.array(numbers, "<f4").tobytes() + reference.pack_bits(levels, first & 0x0F)


@pytest.mark.parametrize("first", [0x63, 0xA3])
def test_refuses_the_reserved_bits_of_log_quantizer(decoder, first):
    with decoder.refuses("reserved bits"):
        decoder.decode_value(LOG_QUANTIZER, 6, log_code(first))


@pytest.mark.parametrize("ends", [(8, 1), (0, 1), (-1, 8), (-0.0, 1), (1, np.inf), (np.nan, 8), (2.0**-127, 1)])
def test_refuses_a_lowest_and_highest_magnitude_that_are_none(decoder, ends):
    with decoder.refuses("lowest and highest magnitude"):
        decoder.decode_value(LOG_QUANTIZER, 6, log_code(numbers=ends))


def test_refuses_a_negative_zero_of_log_quantizer(decoder):
    with decoder.refuses("sign of a zero"):
        decoder.decode_value(LOG_QUANTIZER, 6, log_code(levels=(1, 6, 4, 3, 5, 0)))


def test_refuses_a_segment_said_to_hold_zeros_without_one(decoder):
    with decoder.refuses("zeros in the segment"):
        decoder.decode_value(LOG_QUANTIZER, 6, log_code(levels=(1, 6, 1, 3, 5, 1)))


def test_refuses_a_segment_of_zeros_with_other_ends_than_1(decoder):
    assert decoder.decode_value(LOG_QUANTIZER, 6, log_code(numbers=(1, 1), levels=(0,) * 6)).tolist() == [0] * 6
    with decoder.refuses("ends of a segment of zeros"):
        decoder.decode_value(LOG_QUANTIZER, 6, log_code(numbers=(1, 8), levels=(0,) * 6))


def log_table(first: int = 0x32, means: tuple = (2,), levels: tuple = (1, 3, 0, 1) * 4) -> bytes:
    return log_code(first, means, levels)


def test_refuses_a_table_of_bin_means_for_too_few_values_or_for_zeros_alone(decoder):
    assert decoder.decode_value(LOG_QUANTIZER, 16, log_table()).tolist() == [2, -2, 0, 2] * 4
    with decoder.refuses("table of bin means"):
        decoder.decode_value(LOG_QUANTIZER, 12, log_table(levels=(1, 3, 0, 1) * 3))
    with decoder.refuses("table of bin means"):
        decoder.decode_value(LOG_QUANTIZER, 16, log_table(means=(0,), levels=(0,) * 16))


def test_refuses_a_missing_table_of_bin_means(decoder):
    with decoder.refuses("table of bin means"):
        decoder.decode_value(LOG_QUANTIZER, 16, log_table(0x22, (1, 3)))


@pytest.mark.parametrize("mean", [np.inf, np.nan, -2, -0.0])
def test_refuses_a_bin_mean_that_is_not_finite_or_has_a_sign(decoder, mean):
    with decoder.refuses("bin mean finite and not negative"):
        decoder.decode_value(LOG_QUANTIZER, 16, log_table(means=(mean,)))


def test_refuses_a_bin_mean_below_2_to_the_minus_126(decoder):
    with decoder.refuses("bin mean 0 or at least 2^-126"):
        decoder.decode_value(LOG_QUANTIZER, 16, log_table(means=(2.0**-127,)))


@pytest.mark.parametrize("means", [(1, 0), (1, 2)])
def test_refuses_a_mean_of_an_empty_bin_and_an_empty_mean_of_a_bin(decoder, means):
    levels = (0, 1, 0, 1) * 8 if means == (1, 0) else (0,) * 32
    with decoder.refuses("bin mean 0 exactly for an empty bin"):
        decoder.decode_value(LOG_QUANTIZER, 32, log_table(0x12, means, levels))


ONES = np.ones(64, np.float32)


def deflated(content: bytes = reference.shuffle(ONES.tobytes(), 4), first: int = 1, stride: int = 4) -> bytes:
    return bytes([first, stride]) + zlib.compress(content)


def test_takes_deflated_values_with_and_without_shuffle(decoder):
    assert same_bits(decoder.decode_value(DEFLATE, 64, deflated()), ONES)
    assert same_bits(decoder.decode_value(DEFLATE, 64, deflated(ONES.tobytes(), stride=1)), ONES)


@pytest.mark.parametrize("first", [0, 6, 99, 255])
def test_refuses_another_codec_under_deflate(decoder, first):
    with decoder.refuses("codec under deflate"):
        decoder.decode_value(DEFLATE, 64, deflated(first=first))


@pytest.mark.parametrize("stride", [2, 3, 8])
def test_refuses_another_stride_of_raw_values_than_4_or_1(decoder, stride):
    with decoder.refuses("stride of the byte shuffle"):
        decoder.decode_value(DEFLATE, 64, deflated(stride=stride))


@pytest.mark.parametrize(
    ("length", "stride", "name"),
    [
        (0, 1, "value code length"),
        (252, 1, "value code length"),
        (252, 4, "stride of the byte shuffle"),
        (257, 4, "length of the deflated content"),
        (2**24, 4, "length of the deflated content"),
    ],
)
def test_refuses_deflated_content_of_another_length(decoder, length, stride, name):
    with decoder.refuses(name):
        decoder.decode_value(DEFLATE, 64, deflated(bytes(length), stride=stride)[:255])


def test_refuses_a_deflate_code_without_a_stream(decoder):
    for code in (b"\1", b"\1\4"):
        with decoder.refuses("value code length"):
            decoder.decode_value(DEFLATE, 64, code)


def test_refuses_a_broken_zlib_stream(decoder):
    code = deflated()
    with decoder.refuses("zlib stream"):
        decoder.decode_value(DEFLATE, 64, code[:-1] + bytes([code[-1] ^ 1]))
    with decoder.refuses("zlib stream"):
        decoder.decode_value(DEFLATE, 64, code[:-1])
    with decoder.refuses("zlib stream"):
        decoder.decode_value(DEFLATE, 64, code[:2] + b"\0" + code[3:])


def test_refuses_a_zlib_stream_with_a_preset_dictionary(decoder):
    compressor = zlib.compressobj(zdict=b"\0\0\0\0")
    stream = compressor.compress(reference.shuffle(ONES.tobytes(), 4)) + compressor.flush()
    with decoder.refuses("zlib stream"):
        decoder.decode_value(DEFLATE, 64, b"\1\4" + stream)


def test_refuses_bytes_after_the_zlib_stream(decoder):
    with decoder.refuses("bytes after the zlib stream"):
        decoder.decode_value(DEFLATE, 64, deflated() + b"\0")


def test_refuses_deflated_values_that_are_not_finite(decoder):
    with decoder.refuses("finite values"):
        decoder.decode_value(DEFLATE, 64, deflated(reference.shuffle(np.full(64, np.inf, "<f4").tobytes(), 4)))


# Any bytes

SOME_SIZES = [60, 200, 7]


def some_frame(index_codec: int, value_codec: int, seed: int) -> bytes:
    random = np.random.default_rng(seed)
    segments = []
    for size in SOME_SIZES:
        indices = np.flatnonzero(random.random(size) < random.choice([0.03, 0.3, 0.8]))
        if index_codec == SEEDED:
            indices = reference.seeded_support(size, len(indices), seed, 1, len(segments))
        segments.append((size, 1, indices, spread(seed, len(indices), zeros=0.2 * (seed % 2))))
    return reference.encode_frame(index_codec, value_codec, segments, seed, 1, 2)


@settings(max_examples=300)
@given(
    st.sampled_from(CODECS_OF_INDICES),
    st.sampled_from(CODECS_OF_VALUES),
    st.integers(0, 50),
    st.lists(st.tuples(st.integers(0, 2000), st.integers(0, 7)), min_size=1, max_size=3),
)
def test_a_changed_frame_is_refused_or_decodes_within_its_table(index_codec, value_codec, seed, flips):
    data = bytearray(some_frame(index_codec, value_codec, seed))
    for place, bit in flips:
        data[place % len(data)] ^= 1 << bit
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


@settings(max_examples=300)
@given(st.sampled_from(CODECS_OF_INDICES), st.integers(1, 60), st.data())
def test_indices_that_decode_encode_to_the_same_bytes(codec, size, data):
    count = data.draw(st.integers(0, size))
    code = data.draw(st.binary(max_size=reference.raw_index_length(size, count)))
    try:
        indices = reference.decode_index(codec, size, count, code)
    except FormatError:
        return
    assert reference.encode_index(codec, size, indices) == code


@settings(max_examples=300)
@given(st.sampled_from(CODED_VALUES), st.integers(1, 40), st.data())
def test_coded_values_that_decode_are_finite(codec, number, data):
    code = data.draw(st.binary(max_size=4 * number - 1))
    try:
        values = reference.decode_value(codec, number, code)
    except FormatError:
        return
    assert len(values) == number and np.isfinite(values).all()


# The C++ ops beside the reference


@settings(deadline=None)
@given(supports(), st.sampled_from(EXPLICIT))
def test_ops_write_and_read_the_same_index_codes(support, codec):
    size, indices = support
    code = reference.encode_index(codec, size, indices)
    assert encode_index_with_ops(codec, size, indices).hex() == code.hex()
    np.testing.assert_array_equal(OPS.decode_index(codec, size, len(indices), code), indices)


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 500), st.floats(0, 1)), min_size=1, max_size=4), st.integers(0, 2**32 - 1), st.integers(0, 2**63 - 1)
)
def test_ops_draw_the_same_seeded_supports(chosen, seed, step):
    sizes = [size for size, _ in chosen]
    rows = [(size, round(size * ratio), 1, b"", bytes(4 * round(size * ratio))) for size, ratio in chosen]
    frame = reference.write_frame(SEEDED, FLOAT32, rows, seed, step)
    decoded = decode_with_ops(frame, sizes, [1] * len(sizes), SEEDED, FLOAT32)
    for segment, (indices, _) in zip(reference.decode_frame(frame).segments, decoded, strict=True):
        np.testing.assert_array_equal(indices, segment.indices)


@settings(deadline=None)
@given(values_arrays | spread_arrays, st.sampled_from([FLOAT32, FLOAT16, BFLOAT16]))
def test_ops_write_the_same_float_codes(values, codec):
    assert encode_value_with_ops(codec, values) == reference.encode_value(codec, values)


@settings(deadline=None)
@given(values_arrays | spread_arrays, st.integers(2, 8))
def test_ops_write_the_same_log_quantizer_codes(values, bits):
    assert encode_value_with_ops(LOG_QUANTIZER, values, bits=bits).hex() == reference.encode_value(LOG_QUANTIZER, values, bits=bits).hex()


@settings(deadline=None)
@given(values_arrays | spread_arrays, st.integers(2, 8), st.sampled_from(["max", "l2"]))
def test_the_reference_decodes_what_the_qsgd_op_says_it_sends(values, bits, norm):
    from deepreduce_tf import ops

    if norm == "l2" and bits < 6:
        bits = 6
    encode, _ = ops.codec("qsgd")
    code, _, decoded = encode(values=values, splits=[0, len(values)], seed=3, step=4, bits=bits, norm=norm)
    assert same_bits(reference.decode_value(QSGD, len(values), code.numpy().tobytes()), decoded.numpy())


@settings(deadline=None, max_examples=500)
@given(
    st.sampled_from(CODECS_OF_INDICES),
    st.sampled_from(CODECS_OF_VALUES),
    st.integers(0, 50),
    st.lists(st.tuples(st.integers(0, 2000), st.integers(0, 7)), max_size=2),
)
def test_ops_and_reference_agree_on_a_changed_frame(index_codec, value_codec, seed, flips):
    import tensorflow as tf

    data = bytearray(some_frame(index_codec, value_codec, seed))
    for place, bit in flips:
        data[8 + place % (len(data) - 8)] ^= 1 << bit
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
