"""Stages: their configuration, the ratio, what is selected, and stages that an application writes in Python."""

import json
import math
import re
from pathlib import Path

import keras
import numpy as np
import pytest
import stages
import tensorflow as tf
from stages import EveryNth, HalfPrecision, LowerHalf, WholeIndices, bucket_of, built_in, residuals_of

import deepreduce_tf
from deepreduce_tf import (
    QSGD,
    BFloat16,
    Bitmap,
    BloomFilter,
    DeepReduce,
    Deflate,
    FixedWidth,
    Float16,
    Float32,
    IndexCodec,
    LogQuantizer,
    Nonzero,
    PolyFit,
    RandomK,
    Rice,
    SketchML,
    Sparsifier,
    Stage,
    ThreeLC,
    Threshold,
    TopK,
    ValueCodec,
    compressor,
    ops,
    register_stage,
)
from deepreduce_tf.bucket_layout import layout_of
from deepreduce_tf.index_codecs import SeededSupport
from deepreduce_tf.python_decoder import decode_frames
from deepreduce_tf.stage import resolve_stage, serialize

NORMAL = np.random.default_rng(1).normal(size=(40, 25)).astype("float32")

# Every built-in stage with its default arguments, and some with others.
BUILT_IN_INDEX = built_in(IndexCodec, BloomFilter(0.05, "p0"))
BUILT_IN_VALUE = built_in(
    ValueCodec,
    QSGD(4),
    QSGD(7, "l2"),
    LogQuantizer(3),
    ThreeLC(1.25),
    Deflate(level=9, shuffle=False),
    Deflate("float16"),
    Deflate(QSGD(4)),
    SketchML(6),
    PolyFit(3, 2),
)
SPARSIFIERS = built_in(Sparsifier, TopK(0.03, 7), RandomK(0.2), Threshold(0.5), EveryNth(4))
INDEX_CODECS = [*BUILT_IN_INDEX, WholeIndices()]
VALUE_CODECS = [*BUILT_IN_VALUE, HalfPrecision(), Deflate(HalfPrecision(), 1)]
STAGES = [*SPARSIFIERS, *INDEX_CODECS, *VALUE_CODECS]


def kind_of(stage):
    return next(kind for kind in (Sparsifier, IndexCodec, ValueCodec) if isinstance(stage, kind))


# Configuration


@pytest.mark.parametrize("stage", STAGES, ids=repr)
def test_a_stage_comes_back_from_its_configuration_also_through_json(stage):
    again = type(stage).from_config(json.loads(json.dumps(stage.get_config())))
    assert again == stage and again is not stage and repr(again) == repr(stage)
    assert resolve_stage("stage", json.loads(json.dumps(serialize(stage))), kind_of(stage)) == stage


@pytest.mark.parametrize("stage", STAGES, ids=repr)
def test_the_repr_of_a_stage_makes_an_equal_one(stage):
    names = {type(each).__name__: type(each) for each in STAGES}
    assert eval(repr(stage), names) == stage


def test_stages_differ_by_class_and_by_each_argument():
    for i, a in enumerate(STAGES):
        for j, b in enumerate(STAGES):
            assert (a == b) == (i == j)
    assert TopK(0.1) != "topk"


@pytest.mark.parametrize("stage", STAGES, ids=repr)
def test_a_stage_resolves_from_its_name_in_any_spelling(stage):
    name = type(stage).__name__
    snake = "".join(f"_{letter}" if letter.isupper() else letter for letter in name).strip("_").lower()
    for spelling in (name, name.lower(), name.upper(), snake, snake.replace("_", "-"), snake.replace("_", " ")):
        assert resolve_stage("stage", spelling, kind_of(stage)) == type(stage)()


def test_a_compressor_comes_back_from_its_configuration_also_through_json():
    compression = DeepReduce(TopK(0.02, 10), "bitmap", LogQuantizer(4), error_feedback=False, min_size=5, bucket_bytes=1000, seed=3)
    again = DeepReduce.from_config(json.loads(json.dumps(compression.get_config())))
    assert again.get_config() == compression.get_config() and repr(again) == repr(compression)
    assert (again.sparsifier, again.index, again.value) == (TopK(0.02, 10), Bitmap(), LogQuantizer(4))
    assert not again.error_feedback.enabled and (again.min_size, again.bucket_bytes, again.seed) == (5, 1000, 3)
    assert repr(again) == (
        "DeepReduce(sparsifier=TopK(ratio=0.02, warmup_steps=10), index=Bitmap(), value=LogQuantizer(bits=4), error_feedback=False)"
    )


def test_a_compressor_takes_names():
    compression = DeepReduce("random_k", "fixed-width", "log_quantizer")
    assert (compression.sparsifier, compression.index, compression.value) == (RandomK(), FixedWidth(), LogQuantizer())
    assert DeepReduce(value="LogQuantizer").value == DeepReduce(value="log_quantizer").value


def test_the_default_is_topk_10_percent_with_rice_and_8_bits():
    compression = DeepReduce()
    assert (compression.sparsifier, compression.index, compression.value) == (TopK(0.1), Rice(), QSGD(8, "max"))
    assert compression.error_feedback.enabled


def test_numbers_of_numpy_are_numbers():
    for stage in (TopK(np.float32(0.5)), RandomK(np.float64(0.5)), Threshold(np.float32(0.5)), Threshold(1)):
        assert json.loads(json.dumps(stage.get_config())) == stage.get_config()


def test_a_ratio_that_changes_is_saved_as_the_number_it_was_or_as_its_schedule():
    assert TopK(tf.Variable(0.5)).get_config()["ratio"] == 0.5
    assert RandomK(keras.Variable(0.25)).get_config()["ratio"] == 0.25
    schedule = keras.optimizers.schedules.PolynomialDecay(0.5, 10, 0.1)
    again = TopK.from_config(json.loads(json.dumps(TopK(schedule).get_config())))
    assert isinstance(again.ratio, keras.optimizers.schedules.PolynomialDecay)
    assert again.ratio.get_config() == schedule.get_config()


BAD_RATIOS = [0, 0.0, 2, 1.0001, -1, math.nan, math.inf, "a", None, True, [0.1], object(), float, lambda step: 0.1]
BAD_BITS = [1, 9, 0, -8, 8.0, "8", None, True]
BAD_ARGUMENTS = [
    *((stage, "ratio", ratio) for stage in (TopK, RandomK) for ratio in BAD_RATIOS),
    *((TopK, "warmup_steps", steps) for steps in (-1, 1.5, "1", None, True, 2**31)),
    *((Threshold, "threshold", threshold) for threshold in (0, -1, math.nan, math.inf, 1e39, "1", None, True)),
    *((stage, "bits", bits) for stage in (QSGD, LogQuantizer, SketchML) for bits in BAD_BITS),
    *((QSGD, "norm", norm) for norm in ("L2", "l1", 2, None, ["max"])),
    *((BloomFilter, "fpr", fpr) for fpr in (0, 1, -0.1, 1e-10, 0.9999, math.nan, "0.1", None, True)),
    *((BloomFilter, "policy", policy) for policy in ("P2", "p3", "", 2, None, ["p0"])),
    *((ThreeLC, "multiplier", multiplier) for multiplier in (0.99, 2, 1.99999999, -1, math.nan, "1", None, True, 1j)),
    *((Deflate, "value", stage) for stage in ("float64", "rice", 6, None, QSGD, Rice(), Deflate(), "deflate", serialize(Deflate()))),
    *((Deflate, "level", level) for level in (0, 10, -1, 6.0, "6", None, True)),
    *((PolyFit, "degree", degree) for degree in (0, 16, -1, 5.0, "5", None, True)),
    *((PolyFit, "pieces", pieces) for pieces in (0, 65, -1, 2.0, "2", True)),
    *((Deflate, "shuffle", shuffle) for shuffle in (0, 1, "yes", None)),
    *((DeepReduce, "sparsifier", stage) for stage in ("top", "rice", "", None, 0.1, TopK, Rice(), {"class_name": "Rice"}, {}, [])),
    *((DeepReduce, "index", stage) for stage in ("seeded_support", "qsgd", "", None, 3, Rice, TopK(), {"class_name": None})),
    *((DeepReduce, "value", stage) for stage in ("float64", "rice", "", None, 8, QSGD, Rice(), {"class_name": "TopK"})),
    *((DeepReduce, "error_feedback", feedback) for feedback in (0, 1, "yes", None)),
    *((DeepReduce, "min_size", size) for size in (-1, 1.5, 1024.0, "1", None, True, 2**31)),
    *((DeepReduce, "bucket_bytes", size) for size in (0, -1, 1.5, "1", None, True, 2**33 + 1)),
    *((DeepReduce, "seed", seed) for seed in (-1, 2**32, 1.0, "1", None, True)),
]


def name_of(argument):
    """The same in every process: without addresses."""
    return argument.__name__ if isinstance(argument, type) else re.sub(r" at 0x\w+", "", repr(argument))[:30]


@pytest.mark.parametrize(("stage", "name", "value"), BAD_ARGUMENTS, ids=name_of)
def test_a_bad_argument_is_an_error_that_says_what_was_expected_and_received(stage, name, value):
    with pytest.raises(ValueError) as error:
        stage(**{name: value})
    message = str(error.value)
    assert message.startswith(f"`{name}` must be ") and message.endswith(f"Received: {name}={value!r}")


@pytest.mark.parametrize("variable", [tf.Variable([0.1]), tf.Variable(1), tf.Variable("a"), keras.Variable([0.1])], ids=type)
def test_a_variable_that_is_no_scalar_float_is_no_ratio(variable):
    with pytest.raises(ValueError, match=r"`ratio` must be .* a scalar float variable.* Received: ratio="):
        TopK(variable)


@pytest.mark.parametrize("config", [{"bitz": 4}, {"bits": 4, "class_name": "QSGD"}, None, [], 4])
def test_a_configuration_with_other_arguments_is_an_error_that_lists_them(config):
    with pytest.raises(ValueError, match=r"`config` must hold arguments of QSGD: bits, norm. Received: config="):
        DeepReduce(value={"class_name": "QSGD", "config": config})


class Halved(HalfPrecision):
    """A contraction that receivers would not decode."""

    def contraction(self):
        return Float16()


@pytest.mark.parametrize("value", [Halved(), Deflate(Halved())], ids=repr)
def test_a_contraction_of_another_class_is_refused(value):
    with pytest.raises(ValueError, match=r"`contraction\(\)` must return a Halved, whose `decode` receivers call. Received: Float16\(\)"):
        DeepReduce(value=value)
    DeepReduce(value=value, error_feedback=False)


def test_an_unknown_name_is_an_error_that_lists_the_known_ones():
    with pytest.raises(ValueError, match=r"`index` must be of class IndexCodec, or the name of one: .*Bitmap, .*Rice.*='bloom'"):
        DeepReduce(index="bloom")


def test_stages_that_lack_a_method_say_which():
    for stage, call in (
        (Sparsifier(), lambda s: s([1.0, 2.0])),
        (IndexCodec(), lambda s: s([1.0, 2.0])),
        (ValueCodec(), lambda s: s([1.0, 2.0])),
    ):
        with pytest.raises(NotImplementedError, match=f"{type(stage).__name__} must implement"):
            call(stage)
    assert isinstance(TopK(), Stage)


# The ratio


def kept_of(sparsifier, gradient=NORMAL, step=0):
    selection = sparsifier.select([tf.constant(gradient)], [], tf.constant(0, tf.int64), tf.constant(step, tf.int64))
    return selection.indices.values.numpy()


VARIABLES = [lambda value: tf.Variable(value), lambda value: tf.Variable(value, dtype=tf.float64), lambda value: keras.Variable(value)]


@pytest.mark.parametrize("make", VARIABLES, ids=["tf.Variable", "float64", "keras.Variable"])
@pytest.mark.parametrize("stage", [TopK, RandomK])
def test_a_ratio_that_is_a_variable_changes_without_retracing(stage, make):
    ratio, traces = make(0.5), []
    compression = DeepReduce(stage(ratio), value="float32")

    @tf.function
    def seen(gradient):
        traces.append(gradient)
        return compression(gradient)

    for share in (0.5, 0.125, 1.0):
        ratio.assign(share)
        assert np.count_nonzero(seen(tf.constant(NORMAL))) == share * NORMAL.size
    assert len(traces) == 1


def test_what_a_variable_ratio_holds_is_no_part_of_the_configuration_that_ranks_compare():
    ratio = tf.Variable(0.5)
    compression = DeepReduce(TopK(ratio), value="float32")
    payload = compression.encode(bucket_of([NORMAL])).payload
    ratio.assign(0.1)
    (seen,) = compression.decode(payload, bucket_of([NORMAL]), tf.constant(1.0))
    assert np.count_nonzero(seen) == NORMAL.size / 2


@pytest.mark.parametrize("stage", [TopK, RandomK])
def test_a_ratio_that_is_a_schedule_changes_without_retracing(stage):
    traces = []
    sparsifier = stage(keras.optimizers.schedules.PolynomialDecay(0.5, 10, 0.1))

    @tf.function
    def kept(step):
        traces.append(step)
        return tf.size(sparsifier.select([tf.constant(NORMAL)], [], tf.constant(0, tf.int64), step).indices.values)

    counts = [int(kept(tf.constant(step, tf.int64))) for step in (0, 5, 10, 100)]
    assert counts == [500, 300, 100, 100] and len(traces) == 1


@pytest.mark.parametrize("bad", [0.0, -1.0, 1.5, math.nan])
@pytest.mark.parametrize("make", [lambda ratio: TopK(ratio), lambda ratio: TopK(ratio, 10), lambda ratio: RandomK(ratio)])
def test_a_ratio_that_leaves_its_range_is_refused_when_it_is_used(make, bad):
    ratio = tf.Variable(0.5)
    sparsifier = make(ratio)
    ratio.assign(bad)
    for step in (0, 3, 10):
        with pytest.raises(tf.errors.InvalidArgumentError, match=rf"`ratio` must be in \(0, 1\]\. Received: ratio={bad:g}"):
            kept_of(sparsifier, step=step)


@pytest.mark.parametrize("ratio", [0.001, 0.01, 0.1, 0.25, 0.6])
def test_warm_up_goes_from_25_percent_to_the_ratio_in_equal_factors(ratio):
    sparsifier = TopK(ratio, warmup_steps=4)
    for step in (0, 1, 2, 3, 4, 5, 1000):
        expected = max(ratio, 0.25 * (ratio / 0.25) ** min(step / 4, 1))
        assert float(sparsifier.ratio_at(tf.constant(step, tf.int64))) == pytest.approx(expected)
        assert len(kept_of(sparsifier, step=step)) == max(1, math.floor(expected * NORMAL.size + 0.5))


def test_warm_up_ends_at_its_last_step_exactly():
    sparsifier = TopK(0.01, warmup_steps=1)
    assert [len(kept_of(sparsifier, step=step)) for step in (0, 1, 2)] == [250, 10, 10]


@pytest.mark.parametrize("size", [1, 2, 3, 5, 1000, 4097])
@pytest.mark.parametrize("ratio", [1e-6, 0.001, 0.1, 0.5, 0.9999, 1])
@pytest.mark.parametrize("stage", [TopK, RandomK])
def test_a_ratio_keeps_its_rounded_share_and_at_least_one(stage, ratio, size):
    kept = kept_of(stage(ratio), np.arange(size, dtype="float32"))
    assert len(kept) == max(1, math.floor(ratio * size + 0.5))
    assert (np.diff(kept) > 0).all() and kept[0] >= 0 and kept[-1] < size


# What is selected, against NumPy


def reference_keep(sparsifier, acc, kept_by_seed):
    magnitudes = np.abs(acc.astype("float64"))
    if isinstance(sparsifier, TopK):
        order = sorted(range(acc.size), key=lambda i: (-magnitudes[i], i))
        return np.sort(order[: max(1, math.floor(sparsifier.ratio * acc.size + 0.5))])
    if isinstance(sparsifier, RandomK):
        return kept_by_seed
    if isinstance(sparsifier, EveryNth):
        return np.arange(0, acc.size, sparsifier.n)
    return np.flatnonzero(magnitudes >= (sparsifier.threshold if isinstance(sparsifier, Threshold) else 1e-300))


SELECTING = [TopK(0.1), TopK(1.0), RandomK(0.2), Threshold(0.5), Threshold(100.0), Nonzero(), EveryNth(4)]


def gradients_of(seed):
    draw = np.random.default_rng(seed)
    tied = draw.integers(-3, 4, size=(7, 11)).astype("float32")
    return [draw.normal(size=(30, 40)).astype("float32"), tied, draw.normal(size=3000).astype("float32"), np.float32([[0.75]])]


@pytest.mark.parametrize("feedback", [False, True], ids=["alone", "with residuals"])
@pytest.mark.parametrize("sparsifier", SELECTING, ids=repr)
def test_selection_keeps_what_numpy_keeps_and_leaves_the_sum_in_the_residual(sparsifier, feedback):
    gradients = gradients_of(1)
    before = [np.round(array, 1) for array in gradients_of(2)]
    residuals = residuals_of(before) if feedback else []
    selection = sparsifier.select([tf.constant(g) for g in gradients], residuals, tf.constant(5, tf.int64), tf.constant(9, tf.int64))
    np.testing.assert_array_equal(selection.indices.row_splits, selection.values.row_splits)
    indices, values, splits = selection.indices.values.numpy(), selection.values.values.numpy(), selection.indices.row_splits.numpy()
    assert (indices.dtype, values.dtype, splits.dtype) == (np.int32, np.float32, np.int64)
    assert len(splits) == 5 and splits[0] == 0 and splits[-1] == len(indices) == len(values)
    for i, gradient in enumerate(gradients):
        part = slice(splits[i], splits[i + 1])
        acc = (before[i] + gradient if feedback else gradient).ravel()
        np.testing.assert_array_equal(indices[part], reference_keep(sparsifier, acc, indices[part]))
        np.testing.assert_array_equal(values[part], acc[indices[part]])
        if feedback:
            np.testing.assert_array_equal(residuals[i].numpy().ravel(), acc)


BAD_INDICES = {"first": 0, "middle": 500, "last": 999}


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf], ids=str)
@pytest.mark.parametrize("where", BAD_INDICES)
@pytest.mark.parametrize("sparsifier", [*SELECTING, TopK(1e-6), RandomK(1e-6), RandomK(1.0)], ids=repr)
def test_a_gradient_that_is_not_finite_leaves_its_residual_and_shows_among_the_kept(sparsifier, where, bad):
    sick, well = NORMAL.copy(), NORMAL + 1
    sick.flat[BAD_INDICES[where]] = bad
    residuals = residuals_of([NORMAL, NORMAL])
    scalars = tf.constant(5, tf.int64), tf.constant(9, tf.int64)
    indices, values = sparsifier.select([tf.constant(sick), tf.constant(well)], residuals, *scalars)
    assert not np.isfinite(values[0]).all() and np.isfinite(values[1]).all()
    np.testing.assert_array_equal(residuals[0].numpy(), NORMAL)
    np.testing.assert_array_equal(residuals[1].numpy(), NORMAL + well)
    ops.residual_commit([r.handle for r in residuals], indices.values, values.values, indices.row_splits, [1000, 1000])
    np.testing.assert_array_equal(residuals[0].numpy(), NORMAL)
    assert np.isfinite(residuals[1]).all()


@pytest.mark.parametrize("value", VALUE_CODECS, ids=repr)
@pytest.mark.parametrize("sparsifier", SELECTING, ids=repr)
def test_what_is_not_finite_reaches_the_receivers_under_every_value_codec(sparsifier, value):
    sick = NORMAL.copy()
    sick[3, 7] = np.nan
    assert not np.isfinite(DeepReduce(sparsifier, value=value, error_feedback=False)(sick)).all()


@pytest.mark.parametrize("sparsifier", SELECTING, ids=repr)
def test_residuals_saturate_at_the_largest_float(sparsifier):
    largest = np.float32([3.4028235e38, -3.4028235e38, 1, 0])
    (residual,) = residuals_of([largest])
    sparsifier.select([tf.constant(largest)], [residual], tf.constant(0, tf.int64), tf.constant(0, tf.int64))
    np.testing.assert_array_equal(residual.numpy(), np.float32([3.4028235e38, -3.4028235e38, 2, 0]))


def test_random_indices_change_with_seed_step_and_segment_and_nothing_else():
    def kept(gradient, seed, step):
        scalars = tf.constant(seed, tf.int64), tf.constant(step, tf.int64)
        return RandomK(0.1).select([tf.constant(gradient)] * 2, [], *scalars).indices.values.numpy().reshape(2, -1)

    first = kept(NORMAL, 1, 1)
    np.testing.assert_array_equal(first, kept(NORMAL * 3, 1, 1))
    assert (first[0] != first[1]).any()
    assert (first != kept(NORMAL, 2, 1)).any() and (first != kept(NORMAL, 1, 2)).any()


@pytest.mark.parametrize("sparsifier", SELECTING, ids=repr)
def test_selection_in_a_function_is_selection_in_eager_mode(sparsifier):
    def select(gradient):
        return sparsifier.select([gradient], [], tf.constant(5, tf.int64), tf.constant(9, tf.int64))

    for a, b in zip(select(tf.constant(NORMAL)), tf.function(select)(tf.constant(NORMAL)), strict=True):
        np.testing.assert_array_equal(a.row_splits, b.row_splits)
        np.testing.assert_array_equal(a.values, b.values)


# Calling a stage


@pytest.mark.parametrize("compression", [TopK(0.1), Rice(), Float32(), DeepReduce(value="float32")], ids=repr)
def test_a_stage_called_on_a_gradient_gives_what_receivers_see(compression):
    seen = compression(NORMAL.tolist())
    assert seen.dtype == tf.float32 and seen.shape == NORMAL.shape
    kept = np.flatnonzero(seen)
    np.testing.assert_array_equal(seen.numpy().ravel()[kept], NORMAL.ravel()[kept])
    assert len(kept) == (100 if isinstance(compression, TopK | DeepReduce) else 1000)


def test_topk_says_in_its_example_what_it_does():
    np.testing.assert_array_equal(TopK(ratio=0.34)([3.0, -4.0, 0.5]), [0, -4, 0])


@pytest.mark.parametrize(
    ("codec", "error"),
    [(Float32(), 0), (Deflate(), 0), (Float16(), 2**-11), (BFloat16(), 2**-8), (HalfPrecision(), 2**-11)],
    ids=repr,
)
def test_a_called_value_codec_stays_within_its_relative_error(codec, error):
    values = np.abs(NORMAL) + 0.5
    np.testing.assert_allclose(codec(values), values, rtol=error)


@pytest.mark.parametrize("bits", range(2, 9))
def test_called_quantizers_stay_within_one_level(bits):
    values = NORMAL[:20].ravel()
    step = np.abs(values).max() / (2 ** (bits - 1) - 1)
    np.testing.assert_allclose(QSGD(bits)(values), values, atol=step * 1.0001)
    magnitudes = np.abs(values)
    seen = LogQuantizer(bits)(values).numpy()
    np.testing.assert_array_equal(np.sign(seen), np.sign(values))
    assert magnitudes.min() <= np.abs(seen).min() and np.abs(seen).max() <= magnitudes.max()


@pytest.mark.parametrize("shape", [(), (0,), (1,), (3, 0), (2, 2)], ids=str)
@pytest.mark.parametrize("value", BUILT_IN_VALUE, ids=repr)
def test_scalars_and_empty_gradients_go_through_every_codec(value, shape):
    gradient = np.full(shape, 0.5, "float32")
    for index in INDEX_CODECS:
        seen = DeepReduce(TopK(1.0), index, value, error_feedback=False)(gradient)
        assert seen.shape == shape
        np.testing.assert_allclose(seen, gradient, rtol=0.4)


@pytest.mark.parametrize("value", VALUE_CODECS, ids=repr)
@pytest.mark.parametrize("index", INDEX_CODECS, ids=repr)
def test_a_compressor_in_a_function_is_the_one_in_eager_mode(index, value):
    compression = DeepReduce(TopK(0.05), index, value)
    np.testing.assert_array_equal(compression(NORMAL, 3), tf.function(compression)(tf.constant(NORMAL), 3))


# Stages of the application, and the generic way through the methods of stages


def payload_of_two_ranks(compression, gradients_of_ranks, step=0):
    encoded = [compression.encode(bucket_of(gradients, step=step, rank=rank)) for rank, gradients in enumerate(gradients_of_ranks)]
    return tf.concat([each.payload for each in encoded], 0)


@pytest.mark.parametrize("value", BUILT_IN_VALUE, ids=repr)
@pytest.mark.parametrize("index", [*BUILT_IN_INDEX, None], ids=repr)
def test_the_fused_decoder_and_the_methods_of_the_stages_agree_to_the_bit(index, value):
    compression = DeepReduce(TopK(0.07) if index else RandomK(0.07), index or "rice", value, seed=4)
    gradients = [gradients_of(1), gradients_of(2)]
    payload = payload_of_two_ranks(compression, gradients, step=6)
    bucket = bucket_of(gradients[0], step=6, ranks=2)
    layout, scale = layout_of(bucket.gradients), tf.constant(0.5)
    indices, values, splits = decode_frames(payload, 2, layout, payload[3], index or SeededSupport(), value)
    generic = ops.scatter_sum(indices, values, splits, layout.sizes, scale, N=len(bucket.gradients))
    for fused, each in zip(compression.decode(payload, bucket, scale), generic, strict=True):
        np.testing.assert_array_equal(tf.reshape(fused, [-1]), each)


@pytest.mark.parametrize("value", [HalfPrecision(), Deflate(HalfPrecision()), Float32(), QSGD(8)], ids=repr)
@pytest.mark.parametrize("index", [WholeIndices(), Rice()], ids=repr)
@pytest.mark.parametrize("sparsifier", [EveryNth(5), TopK(0.2)], ids=repr)
@pytest.mark.parametrize("run", [lambda f: f, tf.function], ids=["eager", "function"])
def test_stages_written_with_tensorflow_ops_travel_in_frames(run, sparsifier, index, value):
    compression = DeepReduce(sparsifier, index, value, seed=11)
    gradients = [gradients_of(1), gradients_of(2)]

    def exchange():
        payload = payload_of_two_ranks(compression, gradients, step=8)
        return compression.decode(payload, bucket_of(gradients[0], step=8, ranks=2), tf.constant(0.5))

    for i, total in enumerate(run(exchange)()):
        expected = np.zeros(gradients[0][i].size)
        for rank in gradients:
            flat = rank[i].ravel()
            kept = reference_keep(sparsifier, flat, None)
            expected[kept] += flat[kept] / 2
        tolerance = 2 * np.abs(expected).max() / 127 if isinstance(value, QSGD) else 1e-3
        assert total.shape == gradients[0][i].shape
        np.testing.assert_allclose(total.numpy().ravel(), expected, atol=tolerance)


@pytest.mark.parametrize("run", [lambda f: f, tf.function], ids=["eager", "function"])
def test_what_is_known_of_a_bucket_is_built_once_for_encode_and_decode(run, monkeypatch):
    built = []
    monkeypatch.setattr(compressor, "layout_of", lambda gradients: built.append(gradients) or layout_of(gradients))
    compression, buckets = DeepReduce(value="float32"), [bucket_of([NORMAL]), bucket_of([NORMAL])]

    def exchange():
        return [compression.decode(compression.encode(bucket).payload, bucket, tf.constant(1.0))[0] for bucket in buckets]

    first, second = run(exchange)()
    np.testing.assert_array_equal(first, second)
    assert len(built) == 2
    np.testing.assert_array_equal(compression.decode(compression.encode(buckets[0]).payload, buckets[0], tf.constant(1.0))[0], first)
    assert len(built) == (2 if run is not tf.function else 3)  # tensors of a function are of no use outside


def test_a_support_that_a_codec_changes_gets_the_values_of_that_support_and_the_residual_what_is_left():
    gradients, (residual,) = [np.float32([1, 5, 2, 0.5, 4])], residuals_of([np.float32([0, 0, 10, 0, 0])])
    compression = DeepReduce(TopK(0.4), LowerHalf(), "float32")
    bucket = bucket_of(gradients, [residual])
    encoded = compression.encode(bucket)
    (seen,) = compression.decode(encoded.payload, bucket, tf.constant(1.0))
    encoded.commit()
    np.testing.assert_array_equal(seen, [1, 5, 0, 0, 0])
    np.testing.assert_array_equal(residual.numpy(), [0, 0, 12, 0.5, 4])


def test_a_stage_of_the_application_that_breaks_its_contract_is_told_so():
    class Descending(stages.EveryNth):
        def keep(self, acc, step):
            return tf.constant([3, 1])

    with pytest.raises(tf.errors.InvalidArgumentError, match=r"must ascend strictly in \[0, 1000\)\. Received: 1 after 3 in segment 0"):
        DeepReduce(Descending())(NORMAL)


def test_rows_that_must_all_arrive_are_coded_by_rice_with_a_warning():
    slices = tf.IndexedSlices(tf.constant(NORMAL[:8]), tf.range(0, 16, 2), tf.constant([16, NORMAL.shape[1]]))
    compression, bucket = DeepReduce(index=BloomFilter(0.5, "p1"), value="float32", min_size=0), bucket_of([slices])
    with pytest.warns(UserWarning, match=r"they are coded by Rice\(\), not by BloomFilter\(fpr=0.5, policy='p1'\)"):
        payload = compression.encode(bucket).payload
    (received,) = compression.decode(payload, bucket, tf.constant(1.0))
    np.testing.assert_array_equal(tf.convert_to_tensor(received), tf.convert_to_tensor(slices))


@pytest.mark.parametrize("value", [QSGD(8), QSGD(2), QSGD(3), QSGD(2, "l2"), QSGD(4, "l2"), QSGD(8, "l2")], ids=repr)
def test_gradients_without_a_residual_arrive_whole_on_average(value):
    compression = DeepReduce(value=value, min_size=0)
    gradient = NORMAL[:8]
    slices = tf.IndexedSlices(tf.constant(gradient), tf.range(8), tf.constant(gradient.shape))

    @tf.function
    def mean_of(gradient, steps):
        total = tf.zeros([8, NORMAL.shape[1]])
        for step in tf.range(steps):
            bucket = bucket_of([gradient], step=step)
            total += tf.convert_to_tensor(compression.decode(compression.encode(bucket).payload, bucket, tf.constant(1.0))[0])
        return total / tf.cast(steps, tf.float32)

    mean = mean_of(slices, tf.constant(3000, tf.int64)).numpy()
    scale = np.abs(gradient).max() if value.norm == "max" else np.linalg.norm(gradient)
    noise = scale / (2 ** (value.bits - 1) - 1) / 2 / np.sqrt(3000)  # the standard deviation of the mean is at most that
    assert np.abs(mean - gradient).max() < 6 * noise


def test_counters_go_on_when_another_set_of_variables_is_exchanged():
    feedback = DeepReduce().error_feedback
    shape = tf.TensorShape([2000])
    variables = [tf.Variable(tf.zeros(shape)) for _ in range(3)]
    frozen = feedback.slots(variables[:2], [shape] * 2, [True] * 2)
    feedback.step(frozen).assign(40)
    thawed = feedback.slots(variables, [shape] * 3, [True] * 3)
    assert feedback.step(thawed).numpy() == 40
    assert feedback.step(frozen) is not feedback.step(thawed)


def test_a_stage_of_the_application_cannot_take_the_name_of_a_built_in_one():
    with pytest.raises(ValueError, match=r"must not take the name of a built-in one\. Received: class Rice"):
        register_stage(type("Rice", (IndexCodec,), {"__module__": __name__}))
    assert resolve_stage("index", "rice", IndexCodec) == Rice()


def exchanged(feedback, variables):
    """What an exchange of these variables asks of the error feedback."""
    shapes = [variable.shape for variable in variables]
    slots = feedback.slots(variables, shapes, [True] * len(shapes))
    feedback.step(slots).assign_add(1)
    return slots


def test_a_checkpoint_is_refused_by_a_job_that_exchanges_in_another_order(tmp_path):
    top, base = (tf.Variable(tf.zeros([2000])) for _ in range(2))
    first = DeepReduce()
    exchanged(first.error_feedback, [top])[0].residual.assign(tf.ones([2000]))
    exchanged(first.error_feedback, [base, top])
    path = tf.train.Checkpoint(compression=first).write(str(tmp_path / "rank0"))

    same = DeepReduce()
    tf.train.Checkpoint(compression=same).read(path)
    np.testing.assert_array_equal(exchanged(same.error_feedback, [top])[0].residual, np.ones(2000))
    slots = exchanged(same.error_feedback, [base, top])
    assert np.count_nonzero(slots[0].residual) == 0
    assert same.error_feedback.step(slots).numpy() == first.error_feedback.step(exchanged(first.error_feedback, [base, top])).numpy()

    other = DeepReduce()
    tf.train.Checkpoint(compression=other).read(path)
    with pytest.raises(ValueError, match=r"exchange 0 had 1 gradients of other shapes\. Received: 2 gradients"):
        exchanged(other.error_feedback, [base, top])


# The package


def test_the_version_is_that_of_the_project():
    project = (Path(__file__).parent.parent / "pyproject.toml").read_text()
    assert f'version = "{deepreduce_tf.__version__}"' in project.splitlines()
