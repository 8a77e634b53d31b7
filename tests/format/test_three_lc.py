"""ThreeLC: round trips, and bytes that no encoder writes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from format import reference
from format.arrays import same_bits, spread_arrays, values_arrays
from format.decoders import encode_value_with_ops
from format.reference.three_lc import THREE_LC

MULTIPLIERS = st.sampled_from([1.0, 1.25, 1.5, 1.9375])


def code_of(packed: bytes | list[int], scale: float = 2) -> bytes:
    return np.float32(scale).tobytes() + bytes(packed)


@given(values_arrays | spread_arrays, MULTIPLIERS)
def test_no_value_errs_by_more_than_itself(values, multiplier):
    code = reference.encode_value(THREE_LC, values, multiplier=multiplier)
    decoded = reference.decode_value(THREE_LC, len(values), code).astype(np.float64)
    exact = values.astype(np.float64)
    assert len(code) <= 4 * len(values)
    assert (np.abs(decoded - exact) <= np.abs(exact)).all()


@given(values_arrays | spread_arrays, MULTIPLIERS)
def test_the_op_writes_the_same_code(values, multiplier):
    code = reference.encode_value(THREE_LC, values, multiplier=multiplier)
    assert encode_value_with_ops(THREE_LC, values, multiplier=multiplier).hex() == code.hex()


@pytest.mark.parametrize("zeros", [*range(1, 35), 139, 140, 141, 142, 700])
def test_a_run_of_zeros_comes_back_wherever_it_lies(decoder, zeros):
    for before, after in ((1, 0), (0, 1), (3, 4), (5, 5), (644, 1)):
        values = np.array([1.0] * before + [0.0] * zeros + [-1.0] * after, np.float32)
        code = reference.encode_value(THREE_LC, values)
        assert encode_value_with_ops(THREE_LC, values) == code
        assert same_bits(decoder.decode_value(THREE_LC, len(values), code), values)


def test_zeros_alone_are_runs_under_scale_0(decoder):
    code = reference.encode_value(THREE_LC, np.zeros(141, np.float32))
    assert code.hex(" ") == "00 00 00 00 ff ff 00"  # 29 bytes of zeros, the last for one value
    assert same_bits(decoder.decode_value(THREE_LC, 141, code), np.zeros(141, np.float32))


@pytest.mark.parametrize("packed", [[0, 0], [243, 0], [0, 243], [254, 0], [254, 244], [255, 0, 0]])
def test_refuses_runs_of_zeros_that_were_not_joined(decoder, packed):
    number = 5 * sum(1 if byte == 0 else byte - 241 for byte in packed)
    with decoder.refuses("runs of zeros joined"):
        decoder.decode_value(THREE_LC, number, code_of(packed))


def test_takes_the_longest_run_before_any_other(decoder):
    for rest, q in ((b"", 0), (b"\0", 1), (b"\xf3", 2), (b"\xff", 14)):
        decoded = decoder.decode_value(THREE_LC, 5 * (1 + 14 + q), code_of(b"\1\xff" + rest))
        assert decoded[0] == 2 and not decoded[1:].any()


@pytest.mark.parametrize("packed", [[1, 243], [1, 255], [255]])
def test_refuses_a_run_of_zeros_beyond_the_values(decoder, packed):
    with decoder.refuses("run of zeros within the values"):
        decoder.decode_value(THREE_LC, 10, code_of(packed))


def test_refuses_trits_that_end_early(decoder):
    for packed in (b"", b"\1", b"\1\xf3", b"\1\2\3"):
        with decoder.refuses("trits end early"):
            decoder.decode_value(THREE_LC, 20, code_of(packed))
    with decoder.refuses("value code length"):
        decoder.decode_value(THREE_LC, 20, code_of(b"")[:3])


@pytest.mark.parametrize("last", [0, 1, 243])
def test_refuses_bytes_after_the_trits(decoder, last):
    with decoder.refuses("bytes after the trits"):
        decoder.decode_value(THREE_LC, 10, code_of([1, 2, last]))


def test_refuses_trits_without_a_value(decoder):
    assert decoder.decode_value(THREE_LC, 6, code_of([1, 2])).tolist() == [2, 0, 0, 0, 0, -2]
    with decoder.refuses("trits without a value"):
        decoder.decode_value(THREE_LC, 6, code_of([1, 3]))


def test_refuses_a_scale_out_of_range_and_trits_under_scale_0(decoder):
    for scale in (np.inf, np.nan, -1, -0.0):
        with decoder.refuses("scale finite and not negative"):
            decoder.decode_value(THREE_LC, 6, code_of([1, 1], scale))
    for scale in (2.0**-149, 2.0**-101):
        with decoder.refuses("scale 0 or at least 2^-100"):
            decoder.decode_value(THREE_LC, 6, code_of([1, 1], scale))
    with decoder.refuses("level under scale 0"):
        decoder.decode_value(THREE_LC, 6, code_of([1, 1], 0))
