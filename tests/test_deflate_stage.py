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
from stages import HalfPrecision

from deepreduce_tf import DeepReduce, Deflate, ValueCodec, ops, value_codecs

STAGES = ["float32", "float16", "b_float16", value_codecs.QSGD(4), "log_quantizer", "tern_grad", "natural", "three_lc"]


@settings(deadline=None)
@given(values_arrays | spread_arrays, st.sampled_from(STAGES), st.booleans())
def test_the_reference_decodes_what_the_stage_says_it_sends(values, inner, shuffle):
    code, _, decoded = Deflate(inner, shuffle=shuffle).encode(values, [0, len(values)], 3, 4)
    code = code.numpy().tobytes()
    assert same_bits(reference.decode_value(DEFLATE, len(values), code), decoded.numpy())
    if len(code) < 4 * len(values):
        assert code[1] in ((0, 1) if not shuffle else (0, 1, 2, 4))


class Wide(ValueCodec):
    """Writes float64: more bytes than raw values."""

    def encode(self, values, splits, seed, step):
        return tf.reshape(tf.bitcast(tf.cast(values, tf.float64), tf.uint8), [-1]), 8 * splits, values

    def decode(self, code, code_splits, counts):
        return tf.cast(tf.bitcast(tf.reshape(code, [-1, 8]), tf.float64), tf.float32)


class Padded(Wide):
    """Writes a kilobyte and more for each segment that has values."""

    def encode(self, values, splits, seed, step):
        return tf.zeros([3000 * tf.size(values)], tf.uint8), 3000 * splits, tf.zeros_like(values)

    def decode(self, code, code_splits, counts):
        return tf.zeros([tf.size(code) // 3000])


@pytest.mark.parametrize("codec", [HalfPrecision(), Wide(), Padded()], ids=repr)
@pytest.mark.parametrize("run", [lambda f: f, tf.function], ids=["eager", "function"])
def test_an_applications_codec_gets_its_own_codes_back(codec, run):
    values = np.float32([*np.ones(300), *np.random.default_rng(0).normal(size=7), np.inf])
    stage, splits = Deflate(codec), np.array([0, 300, 300, 307, 308])
    code, code_splits, decoded = run(lambda: stage.encode(values, tf.constant(splits), 0, 0))()
    assert stage.codec_id == 255
    inner, inner_splits, expected = codec.encode(values, tf.constant(splits), 0, 0)
    for got, want in zip(ops.inflate(code, code_splits, np.diff(splits)), (inner, inner_splits), strict=True):
        np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(stage.decode(code, code_splits, np.diff(splits)), expected)
    np.testing.assert_array_equal(decoded, expected)
    lengths = np.diff(code_splits)
    assert lengths[1] == 0 and lengths[0] < 60 + 900_002 * isinstance(codec, Padded)


def test_an_applications_code_that_is_longer_than_what_a_stream_may_hold_is_stored():
    code, code_splits, _ = Deflate(Padded()).encode(np.zeros(7, np.float32), np.array([0, 7]), 0, 0)
    assert code_splits[-1] == 2 + 21000 and code[1] == 0


def test_a_nested_stage_is_part_of_the_plan_that_ranks_compare_and_its_variables_are_those_of_the_compressor():
    from deepreduce_tf.stage import agreement, variables_of

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
