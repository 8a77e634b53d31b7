"""The stage Deflate around other codecs, the library's and an application's."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf
from format import reference
from format.arrays import same_bits, spread_arrays, values_arrays
from format.reference.deflate import DEFLATE
from hypothesis import given, settings
from hypothesis import strategies as st
from stages import HalfPrecision, ragged

from deepreduce_tf import DeepReduce, Deflate, ValueCodec, ops, value_codecs
from deepreduce_tf.stage import agreement, variables_of

STAGES = ["float32", "float16", "b_float16", value_codecs.QSGD(4), "log_quantizer", "tern_grad", "natural", "three_lc"]


@settings(deadline=None)
@given(values_arrays | spread_arrays, st.sampled_from(STAGES), st.booleans())
def test_the_reference_decodes_what_the_stage_says_it_sends(values, inner, shuffle):
    code, decoded = Deflate(inner, shuffle=shuffle).encode(ragged([values], np.float32), 3, 4)
    code = code.values.numpy().tobytes()
    assert same_bits(reference.decode_value(DEFLATE, len(values), code), decoded.values.numpy())
    if len(code) < 4 * len(values):
        assert code[1] in ((0, 1) if not shuffle else (0, 1, 2, 4))


class Wide(ValueCodec):
    """Writes float64: more bytes than raw values."""

    def encode(self, values, seed, step):
        code = tf.reshape(tf.bitcast(tf.cast(values.values, tf.float64), tf.uint8), [-1])
        return tf.RaggedTensor.from_row_splits(code, 8 * values.row_splits), values

    def decode(self, code, counts):
        values = tf.bitcast(tf.reshape(code.values, [-1, 8]), tf.float64)
        return tf.RaggedTensor.from_row_lengths(tf.cast(values, tf.float32), counts)


class Padded(Wide):
    """Writes a kilobyte and more for each segment that has values."""

    def encode(self, values, seed, step):
        code = tf.zeros([3000 * tf.size(values.values)], tf.uint8)
        return tf.RaggedTensor.from_row_splits(code, 3000 * values.row_splits), tf.zeros_like(values)

    def decode(self, code, counts):
        return tf.RaggedTensor.from_row_lengths(tf.zeros([tf.size(code.values) // 3000]), counts)


@pytest.mark.parametrize("codec", [HalfPrecision(), Wide(), Padded()], ids=repr)
@pytest.mark.parametrize("run", [lambda f: f, tf.function], ids=["eager", "function"])
def test_an_applications_codec_gets_its_own_codes_back(codec, run):
    values = np.float32([*np.ones(300), *np.random.default_rng(0).normal(size=7), np.inf])
    stage, rows = Deflate(codec), tf.RaggedTensor.from_row_splits(values, np.array([0, 300, 300, 307, 308]))
    code, decoded = run(lambda: stage.encode(rows, 0, 0))()
    assert stage.codec_id == 255
    inner, expected = codec.encode(rows, 0, 0)
    for got, want in zip(ops.inflate(code.values, code.row_splits, rows.row_lengths()), (inner.values, inner.row_splits), strict=True):
        np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(stage.decode(code, rows.row_lengths()).values, expected.values)
    np.testing.assert_array_equal(decoded.values, expected.values)
    lengths = np.diff(code.row_splits)
    assert lengths[1] == 0 and lengths[0] < 60 + 900_002 * isinstance(codec, Padded)


def test_an_applications_code_that_is_longer_than_what_a_stream_may_hold_is_stored():
    code, _ = Deflate(Padded()).encode(ragged([np.zeros(7)], np.float32), 0, 0)
    assert code.row_lengths() == [2 + 21000] and code.values[1] == 0


def test_a_nested_stage_is_part_of_the_configuration_that_ranks_compare_and_its_variables_are_those_of_the_compressor():
    stage = HalfPrecision()
    stage.scale = tf.Variable(1.0)
    assert variables_of(Deflate(stage)) == [stage.scale]
    assert agreement(Deflate("float16")) != agreement(Deflate("b_float16"))
    assert any(variable is stage.scale for variable in DeepReduce(value=Deflate(stage))._stage_variables)
    assert repr(Deflate(value_codecs.QSGD(4), 9)) == "Deflate(value=QSGD(bits=4, norm='max'), level=9, shuffle=True)"


def test_the_contraction_of_a_nested_codec_is_the_one_used_under_error_feedback():
    stage = Deflate("tern_grad")
    assert stage.contraction().value.shrinks and not stage.value.shrinks
    assert stage.contraction() == stage
