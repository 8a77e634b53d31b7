"""What holds for every index codec: the empty form, the raw form, and that both implementations agree."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from format import reference
from format.arrays import supports
from format.decoders import OPS, encode_index_with_ops
from format.reference import FormatError
from format.reference.index_codes import raw_index_length

INDEX_CODES = sorted(reference.INDEX_CODES.values(), key=lambda codec: codec.id)
LOSSLESS = [codec for codec in INDEX_CODES if codec.encode]
WITH_RAW = [codec for codec in INDEX_CODES if codec.has_raw]


@given(supports(), st.sampled_from(WITH_RAW))
def test_a_support_comes_back_and_is_never_longer_than_raw(support, codec):
    size, indices = support
    code = reference.encode_index(codec, size, indices)
    assert len(code) <= raw_index_length(size, len(indices))
    np.testing.assert_array_equal(reference.decode_index(codec, size, len(indices), code), indices)


@given(supports(), st.sampled_from(WITH_RAW))
def test_ops_write_and_read_the_same_index_codes(support, codec):
    size, indices = support
    code = reference.encode_index(codec, size, indices)
    assert encode_index_with_ops(codec, size, indices).hex() == code.hex()
    np.testing.assert_array_equal(OPS.decode_index(codec, size, len(indices), code), indices)


@settings(max_examples=300)
@given(st.sampled_from(LOSSLESS), st.integers(1, 60), st.data())
def test_indices_that_decode_encode_to_the_same_bytes(codec, size, data):
    count = data.draw(st.integers(0, size))
    code = data.draw(st.binary(max_size=raw_index_length(size, count)))
    try:
        indices = reference.decode_index(codec, size, count, code)
    except FormatError:
        return
    assert reference.encode_index(codec, size, indices) == code


@pytest.mark.parametrize("codec", INDEX_CODES)
@pytest.mark.parametrize("count", [0, 9])
def test_refuses_a_code_where_none_or_all_are_kept(decoder, codec, count):
    assert len(decoder.decode_index(codec, 9, count, b"")) == count
    with decoder.refuses("index code length"):
        decoder.decode_index(codec, 9, count, b"\0")


@pytest.mark.parametrize("codec", LOSSLESS)
def test_refuses_a_code_longer_than_raw(decoder, codec):
    with decoder.refuses("index code length"):
        decoder.decode_index(codec, 100, 3, bytes(4))
