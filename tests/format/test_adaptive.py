"""Adaptive: what the encoders write for any shape, and that both decoders hold every rule."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from format import reference
from format.decoders import OPS, REFERENCE, REFUSED, encode_index_with_ops
from format.reference import FormatError
from format.reference.adaptive import ADAPTIVE, encode_tree
from format.reference.bits import pack_bits, write_leb128
from format.reference.index_codes import raw_index_length
from format.reference.rice import RICE, encode_rice


def active(seed: int, shape: tuple[int, int, int], ratio: float) -> np.ndarray:
    """A support of rows and columns that are active to different degrees."""
    random = np.random.default_rng(seed)
    _, rows, columns = shape
    scale = random.random((rows, 1)) ** 3 * random.random(columns) ** 3
    size = np.prod(shape)
    count = max(1, round(ratio * size))
    return np.sort(np.argsort(-np.abs(random.standard_normal(shape) * scale).ravel())[:count])


shapes = st.tuples(st.integers(1, 4), st.integers(1, 12), st.integers(1, 40))


@given(st.integers(0, 2**31), shapes, st.sampled_from([0.01, 0.1, 0.3, 0.6, 0.95]))
def test_ops_write_and_read_the_same_codes_for_any_shape(seed, shape, ratio):
    size, indices = int(np.prod(shape)), active(seed, shape, ratio)
    code = reference.encode_index(ADAPTIVE, size, indices, rows=shape[1], columns=shape[2])
    assert len(code) <= len(reference.encode_index(RICE, size, indices))
    assert encode_index_with_ops(ADAPTIVE, size, indices, rows=shape[1], columns=shape[2]).hex() == code.hex()
    for decoder in (REFERENCE, OPS):
        np.testing.assert_array_equal(decoder.decode_index(ADAPTIVE, size, len(indices), code), indices)


@pytest.mark.parametrize(
    ("rows", "columns"), [(0, 20), (-3, -20), (3, 0), (7, 20), (3, 19), (1, 1200), (1200, 1), (2**62, 4), (40, 2**61), (60, 40), (-60, -20)]
)
def test_a_shape_that_does_not_fit_the_size_is_no_structure(rows, columns):
    indices = active(1, (3, 20, 20), 0.3)
    plain = encode_index_with_ops(ADAPTIVE, 1200, indices)
    assert plain[0] == 0x80
    assert encode_index_with_ops(ADAPTIVE, 1200, indices, rows=rows, columns=columns) == plain


SHAPE = (3, 20, 20)
INDICES = active(1, SHAPE, 0.1)
CODE = reference.encode_index(ADAPTIVE, 1200, INDICES, rows=20, columns=20)


def decode(decoder, code: bytes, size: int = 1200, count: int = len(INDICES)) -> np.ndarray:
    return decoder.decode_index(ADAPTIVE, size, count, code)


def test_takes_the_code_that_the_others_change(decoder):
    assert CODE[:3] == b"\x81\x14\x14"
    np.testing.assert_array_equal(decode(decoder, CODE), INDICES)


@pytest.mark.parametrize("first", range(0x82, 0x100, 25))
def test_refuses_a_first_byte_of_no_form(decoder, first):
    with decoder.refuses("first byte of the tree"):
        decode(decoder, bytes([first]) + CODE[1:])


def test_refuses_an_empty_code(decoder):
    with decoder.refuses("index code length"):
        decode(decoder, b"")


@pytest.mark.parametrize("start", [b"\x81", b"\x81\x14", b"\x81\x94", b"\x81\x14\x94"])
def test_refuses_rows_and_columns_that_end_early(decoder, start):
    with decoder.refuses("rows and columns cut off"):
        decode(decoder, start)


def test_refuses_rows_and_columns_in_more_bytes_than_needed(decoder):
    for start in (b"\x81\x94\x00\x14", b"\x81\x14\x94\x00"):
        with decoder.refuses("number longer than needed"):
            decode(decoder, start + CODE[3:])


@pytest.mark.parametrize(("rows", "columns"), [(0, 20), (20, 0), (20, 1), (7, 20), (20, 7), (120, 20), (1, 1200), (1, 1), (2**20, 20)])
def test_refuses_rows_and_columns_that_are_no_shape_of_the_size(decoder, rows, columns):
    with decoder.refuses("rows and columns"):
        decode(decoder, b"\x81" + write_leb128(rows) + write_leb128(columns) + CODE[3:])


@pytest.mark.parametrize(("rows", "columns"), [(1, 1024), (2, 2**15), (2**19, 2), (1, 2), (1, 1023)])
def test_refuses_more_lines_or_columns_than_64_for_each_kept_element(decoder, rows, columns):
    with decoder.refuses("rows and columns"):
        decode(decoder, b"\x81" + write_leb128(rows) + write_leb128(columns), 2**20, 10)


@pytest.mark.parametrize("length", range(3, len(CODE)))
def test_refuses_a_code_that_ends_early(decoder, length):
    with pytest.raises(REFUSED):
        decode(decoder, CODE[:length])


def test_refuses_bytes_after_the_code_and_the_larger_numbers_of_its_interval(decoder):
    for end in (b"\0", b"\1", bytes(40)):
        with decoder.refuses("number of the range code"):
            decode(decoder, CODE + end)
    above = [CODE[:-1] + bytes([CODE[-1] + step]) for step in (1, 2)]
    for code in above:
        with pytest.raises(REFUSED):
            decode(decoder, code)


def test_notices_most_changes():
    """Most, but no checksum: some changes give the code of another support."""
    taken = 0
    for bit in range(8 * 3, 8 * len(CODE)):
        changed = bytearray(CODE)
        changed[bit // 8] ^= 1 << bit % 8
        try:
            indices = decode(REFERENCE, bytes(changed))
        except FormatError:
            continue
        taken += 1
        assert reference.encode_index(ADAPTIVE, 1200, indices, rows=20, columns=20) == changed
    print(f"{taken} of {8 * len(CODE) - 24} changes of one bit are the code of another support")
    assert taken < 0.05 * 8 * len(CODE)


def test_refuses_the_number_that_no_interval_holds(decoder):
    for code in (b"\x80" + b"\xff" * 30, b"\x81\x14\x14" + b"\xff" * 5):
        with decoder.refuses("number of the range code"):
            decode(decoder, code)


def test_refuses_a_tree_that_ends_before_all_kept_elements_are_found(decoder):
    # A high number answers "no" to whatever is asked.
    with decoder.refuses("kept elements of the tree"):
        decode(decoder, b"\x81\x14\x14" + b"\xff\xff\xff\xfe")


@pytest.mark.parametrize(("count", "rows", "columns", "longer"), [(12, 1, 1, 0), (20, 1, 1, 1), (20, 10, 10, 3)])
def test_refuses_a_tree_where_the_form_of_rice_is_as_short(decoder, count, rows, columns, longer):
    indices = np.sort(np.random.default_rng(0).choice(1000, count, replace=False))
    tree, rice = encode_tree(1000, indices, rows, columns), encode_rice(1000, indices)
    assert len(tree) - len(rice) == longer and len(tree) < raw_index_length(1000, count)
    np.testing.assert_array_equal(decode(decoder, rice, 1000, count), indices)
    with decoder.refuses("tree only where Rice's form is not as short"):
        decode(decoder, tree, 1000, count)


def test_takes_the_form_of_rice_where_a_tree_of_some_shape_is_shorter(decoder):
    rice = encode_rice(1200, INDICES)
    assert len(rice) > len(CODE)
    np.testing.assert_array_equal(decode(decoder, rice), INDICES)


def test_refuses_a_form_of_rice_that_rice_refuses(decoder):
    rice = encode_rice(1200, INDICES)
    for code in (rice[:-1], rice + b"\0", bytes([rice[0] + 1]) + rice[1:], bytes([rice[0] | 0x40]) + rice[1:]):
        with pytest.raises(REFUSED):
            decode(decoder, code)


def test_refuses_raw_indices_where_the_form_of_rice_is_shorter(decoder):
    with decoder.refuses("raw only where the coded form is not shorter"):
        decode(decoder, pack_bits(INDICES, 11))
    few = np.array([0, 2, 5])
    np.testing.assert_array_equal(decode(decoder, pack_bits(few, 3), 6, 3), few)


def test_takes_raw_indices_where_only_a_tree_of_some_shape_is_shorter(decoder):
    indices = np.arange(31, 400, 64)
    code = reference.encode_index(ADAPTIVE, 448, indices, rows=1, columns=64)
    raw = pack_bits(indices, 9)
    assert code[0] == 0x81 and len(code) < len(raw)
    np.testing.assert_array_equal(decode(decoder, code, 448, len(indices)), indices)
    np.testing.assert_array_equal(decode(decoder, raw, 448, len(indices)), indices)
