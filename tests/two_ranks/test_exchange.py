"""What two ranks exchange with DeepReduce: sums, shapes, dtypes, hostile gradients, and ranks that do not agree."""

import itertools
import time

import horovod.tensorflow as hvd
import numpy as np
import pytest
import tensorflow as tf
from stages import built_in

from deepreduce_tf import (
    QSGD,
    Bitmap,
    DeepReduce,
    Deflate,
    DoubleExpFit,
    Float32,
    IndexCodec,
    LogQuantizer,
    Nonzero,
    PolyFit,
    RandomK,
    Rice,
    SketchML,
    Sparsifier,
    ThreeLC,
    Threshold,
    TopK,
    ValueCodec,
)
from horovod_ext.exchange import exchange

RANK = hvd.rank()
MINE = 1.0 + 2.0 * RANK  # 1 and 3


def lossless(**options):
    return DeepReduce(**{"sparsifier": TopK(ratio=1.0), "value": "float32", "min_size": 0, **options})


def variables_like(gradients):
    return [tf.Variable(tf.zeros(tf.shape(tf.convert_to_tensor(g)), g.dtype)) for g in gradients]


def normal(*shape, seed=0, rank=RANK, dtype="float32"):
    return tf.constant(np.random.default_rng([seed, rank]).normal(size=shape), dtype)


@pytest.fixture(params=[False, True], ids=["eager", "function"])
def call(request):
    """`exchange` as it is, and inside a tf.function."""
    return tf.function(exchange) if request.param else exchange


# Reductions.


@pytest.mark.parametrize("min_size", [0, 1024])
@pytest.mark.parametrize(("op", "expected"), [(hvd.Average, 2.0), (hvd.Sum, 4.0)])
def test_gradients_of_1_and_3_give_2_and_4(call, op, expected, min_size):
    gradient = tf.fill([5], MINE)
    (result,) = call(lossless(min_size=min_size), [gradient], variables_like([gradient]), op=op)
    assert result.numpy().tolist() == [expected] * 5


@pytest.mark.parametrize("min_size", [0, 1024])
@pytest.mark.parametrize(("op", "expected"), [(hvd.Average, 12.0), (hvd.Sum, 24.0)])
def test_scales_before_and_after_the_sum_multiply(call, op, expected, min_size):
    gradient = tf.fill([5], MINE)
    scales = {"prescale_factor": 2.0, "postscale_factor": 3.0}
    (result,) = call(lossless(min_size=min_size), [gradient], variables_like([gradient]), op=op, **scales)
    assert result.numpy().tolist() == [expected] * 5


@pytest.mark.parametrize("min_size", [0, 1024])
def test_none_keeps_its_position(call, min_size):
    gradients = [None, tf.fill([2], MINE), None, tf.fill([3], 10 * MINE), None]
    variables = [tf.Variable(tf.zeros(n)) for n in (1, 2, 1, 3, 1)]
    results = call(lossless(min_size=min_size), gradients, variables)
    assert [result is None for result in results] == [True, False, True, False, True]
    assert results[1].numpy().tolist() == [2, 2]
    assert results[3].numpy().tolist() == [20, 20, 20]


def test_nothing_but_none_exchanges_nothing(call):
    assert call(lossless(), [None, None], [tf.Variable(0.0), tf.Variable(0.0)]) == [None, None]
    assert call(lossless(), [], []) == []


@pytest.mark.parametrize("ratio", [1e-6, 1.0])
@pytest.mark.parametrize("sparsifier", [TopK, RandomK])
@pytest.mark.parametrize("value", [Float32(), QSGD(), LogQuantizer(), ThreeLC(), Deflate(QSGD()), PolyFit(), DoubleExpFit()], ids=repr)
def test_scalars_empty_tensors_and_few_elements_keep_their_shape(sparsifier, ratio, value):
    shapes = [(), (0,), (1,), (2,), (3,), (4, 0, 2), (1, 1, 1), (2, 3)]
    gradients = [tf.fill(shape, MINE) for shape in shapes]
    results = exchange(lossless(sparsifier=sparsifier(ratio), value=value), gradients, variables_like(gradients))
    for result, shape in zip(results, shapes, strict=True):
        assert result.shape == shape
        values = result.numpy().ravel()
        if ratio == 1:
            np.testing.assert_allclose(values, 2, rtol=1e-2)
        elif values.size:
            np.testing.assert_allclose(values.sum(), 2, rtol=1e-2)  # one of equal ones: TopK the first, RandomK the same on both


def test_a_list_of_empty_tensors_alone_is_exchanged(call):
    gradients = [tf.zeros([0]), tf.zeros([3, 0])]
    results = call(lossless(), gradients, variables_like(gradients))
    assert [tuple(result.shape) for result in results] == [(0,), (3, 0)]


@pytest.mark.parametrize("min_size", [0, 1024])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_a_gradient_keeps_its_dtype(call, dtype, min_size):
    gradient = tf.cast(tf.constant([0.5, -2.0, 0.0]) * MINE, dtype)
    (result,) = call(lossless(min_size=min_size), [gradient], variables_like([gradient]))
    assert result.dtype == dtype
    assert tf.cast(result, tf.float32).numpy().tolist() == [1, -4, 0]


@pytest.mark.parametrize("min_size", [0, 1024])
def test_sums_beyond_float16_average_to_what_float16_can_hold(call, min_size):
    gradient = tf.constant([40000.0, -40000.0, 1.0], tf.float16)
    variables = variables_like([gradient])
    assert call(lossless(min_size=min_size), [gradient], variables)[0].numpy().tolist() == [40000, -40000, 1]
    half = call(lossless(min_size=min_size), [gradient / 2], variables, op=hvd.Sum)[0]
    assert half.numpy().tolist() == [40000, -40000, 1]


def test_small_float64_gradients_keep_their_precision(call):
    gradient = normal(7, dtype="float64")
    (result,) = call(lossless(min_size=8), [gradient], variables_like([gradient]), prescale_factor=0.1)
    expected = 0.1 * (normal(7, rank=0, dtype="float64") + normal(7, rank=1, dtype="float64")).numpy() / 2
    np.testing.assert_allclose(result, expected, rtol=1e-14)


@pytest.mark.parametrize("shape", [None, [None], [None, 4]], ids=str)
def test_static_shapes_may_be_unknown(shape):
    compression = lossless()

    @tf.function(input_signature=[tf.TensorSpec(shape), tf.TensorSpec([5])])
    def run(unknown, known):
        return exchange(compression, [unknown, known], ["unknown", "known"])

    for rows in (3, 7, 0, 1):
        gradient = normal(*((rows, 4) if shape != [None] else (rows,)), seed=rows)
        other = normal(*gradient.shape, seed=rows, rank=1 - RANK)
        unknown, known = run(gradient, tf.fill([5], MINE))
        np.testing.assert_allclose(unknown, (gradient + other) / 2, rtol=1e-6)
        assert known.numpy().tolist() == [2] * 5


def test_a_variable_that_comes_up_twice_and_a_tensor_among_the_sources_are_exchanged(call):
    variable = tf.Variable(tf.zeros(3))
    gradients = [tf.constant([3.0, 2.0, 0.0]) * factor for factor in (1.0, 10.0, 100.0)]
    compression = DeepReduce(TopK(ratio=0.3), value="float32", min_size=0)
    results = call(compression, gradients, [variable, variable, None])
    assert [result.numpy().tolist() for result in results] == [[3, 0, 0], [30, 0, 0], [300, 0, 0]]
    results = call(compression, gradients, [variable, variable, None])
    assert results[0].numpy().tolist() == [0, 4, 0]


@pytest.mark.parametrize("bucket_bytes", [1, 4 * 3000, 2**25])
def test_the_number_of_buckets_does_not_change_the_result(bucket_bytes, assert_equal_on_both_ranks):
    gradients = [normal(2000), normal(30, 40), normal(10), normal(1500, 1), normal(1000)]
    compression = DeepReduce(TopK(ratio=0.05), value=LogQuantizer(bits=4), min_size=20, bucket_bytes=bucket_bytes)
    one = DeepReduce(TopK(ratio=0.05), value=LogQuantizer(bits=4), min_size=20)
    variables = variables_like(gradients)
    for _ in range(3):
        results = exchange(compression, gradients, variables)
        for result, expected in zip(results, exchange(one, gradients, variables), strict=True):
            np.testing.assert_array_equal(result, expected)
    assert_equal_on_both_ranks(*results)


def test_alone_in_a_process_set_the_gradient_comes_back_unchanged(call, only_rank_0):
    if RANK != 0:
        return
    gradients = [normal(5), normal(5, dtype="float16"), None]
    compression = DeepReduce(TopK(ratio=0.2), value=QSGD(bits=2), min_size=0)
    results = call(compression, gradients, [*variables_like(gradients[:2]), None], process_set=only_rank_0)
    np.testing.assert_array_equal(results[0], gradients[0])
    np.testing.assert_array_equal(results[1], gradients[1])
    assert results[2] is None
    assert compression.error_feedback.residuals() == {}


# Sparse gradients.


def sparse(ids, values, rows=6):
    shape = tf.constant([rows, *np.shape(values)[1:]], tf.int64)
    return tf.IndexedSlices(tf.constant(values, tf.float32), tf.constant(ids, tf.int64), shape)


SLICES = {
    "duplicates and different ids": [([4, 1, 4], [[1.0, 2], [3, 4], [5, 6]]), ([1, 0], [[10.0, 20], [30, 40]])],
    "rows of several dimensions": [([2], np.arange(6.0).reshape(1, 2, 3)), ([5, 2], np.ones((2, 2, 3)))],
    "rows of one element": [([3, 3, 0], [1.0, 2, 3]), ([5], [7.0])],
    "empty on one rank": [([1, 2], [[1.0, 2], [3, 4]]), (np.zeros([0]), np.zeros([0, 2]))],
    "empty on both ranks": [(np.zeros([0]), np.zeros([0, 2]))] * 2,
}


def dense(ids, values):
    total = np.zeros((6, *np.shape(values)[1:]))
    np.add.at(total, np.asarray(ids, int), values)
    return total


@pytest.mark.parametrize("case", SLICES)
@pytest.mark.parametrize("sparsifier", [TopK(0.1), RandomK(0.1), Threshold(5.0)], ids=repr)
def test_all_rows_of_slices_are_exchanged_and_merged(call, case, sparsifier):
    gradient = sparse(*SLICES[case][RANK])
    variable = tf.Variable(tf.zeros(gradient.dense_shape))
    (result,) = call(DeepReduce(sparsifier, value="float32"), [gradient], [variable], op=hvd.Sum)
    assert isinstance(result, tf.IndexedSlices)
    assert result.indices.dtype == tf.int64
    ids = result.indices.numpy().tolist()
    assert ids == sorted({int(i) for rank in (0, 1) for i in SLICES[case][rank][0]})
    np.testing.assert_allclose(tf.convert_to_tensor(result), dense(*SLICES[case][0]) + dense(*SLICES[case][1]))


def test_slices_as_dense_go_through_the_sparsifier(call):
    gradient = sparse(*SLICES["duplicates and different ids"][RANK])
    variable = tf.Variable(tf.zeros([6, 2]))
    (result,) = call(lossless(), [gradient], [variable], sparse_as_dense=True)
    expected = sum(dense(*SLICES["duplicates and different ids"][rank]) for rank in (0, 1)) / 2
    assert isinstance(result, tf.Tensor)
    np.testing.assert_allclose(result, expected)


def test_slices_and_dense_gradients_share_a_step(call):
    gradients = [tf.fill([2000], MINE), sparse(*SLICES["rows of one element"][RANK]), tf.fill([3], MINE)]
    variables = [tf.Variable(tf.zeros(n)) for n in (2000, 6, 3)]
    results = call(lossless(min_size=1024), gradients, variables)
    np.testing.assert_allclose(results[0], 2)
    np.testing.assert_allclose(tf.convert_to_tensor(results[1]), [1.5, 0, 0, 1.5, 0, 3.5])
    np.testing.assert_allclose(results[2], 2)


# Gradients that are not finite, zero, or constant.


@pytest.mark.parametrize("value", [Float32(), QSGD(bits=4), LogQuantizer(bits=4)], ids=repr)
@pytest.mark.parametrize("sparsifier", [TopK(0.01), RandomK(0.01), Threshold(1.0), Nonzero()], ids=repr)
def test_what_is_not_finite_on_one_rank_reaches_both_in_its_own_gradient_alone(sparsifier, value):
    compression = DeepReduce(sparsifier, value=value, min_size=0)
    clean = [normal(300, seed=seed) for seed in range(3)]
    variables = variables_like(clean)
    exchange(compression, clean, variables)
    for index in (0, 150, 299):
        for bad in (np.nan, np.inf, -np.inf):
            spoilt = tf.tensor_scatter_nd_update(clean[1], [[index]], [bad])
            gradients = [clean[0], spoilt if RANK == 1 else clean[1], clean[2]]
            before = [residual.numpy() for residual in compression.error_feedback.residuals().values()]
            results = exchange(compression, gradients, variables)
            assert [bool(np.isfinite(result).all()) for result in results] == [True, False, True]
            after = [residual.numpy() for residual in compression.error_feedback.residuals().values()]
            untouched = [a.tobytes() == b.tobytes() for a, b in zip(before, after, strict=True)]
            if RANK == 1:
                assert untouched == [False, True, False] or sparsifier == Nonzero()
                assert untouched[1]
            assert all(np.isfinite(residual).all() for residual in after)
            assert all(np.isfinite(result).all() for result in exchange(compression, clean, variables))


def test_what_is_not_finite_in_a_small_gradient_reaches_both_ranks(call):
    gradient = tf.constant([1.0, 1.0, np.nan if RANK == 1 else 1.0, 1.0, 1.0])
    (result,) = call(DeepReduce(), [gradient], variables_like([gradient]))
    assert np.isnan(result).tolist() == [False, False, True, False, False]


VALUES = [Float32(), QSGD(), LogQuantizer(), ThreeLC(), Deflate(QSGD()), PolyFit(), DoubleExpFit(), SketchML()]
# RandomK sends no index code, and Nonzero keeps what Threshold does of these gradients: one index codec stands for all beside them.
STAGES = [
    *itertools.product([TopK(0.1), Threshold(1.0)], built_in(IndexCodec), VALUES),
    *itertools.product([RandomK(0.1), Nonzero()], [Rice()], built_in(ValueCodec, *VALUES)),
]


@pytest.mark.parametrize(("sparsifier", "index", "value"), STAGES, ids=repr)
def test_a_rank_may_have_only_zeros_and_keep_nothing(sparsifier, index, value):
    gradients = [tf.fill([200], 2.0 * (1 - RANK)), tf.zeros([300])]
    compression = DeepReduce(sparsifier, index, value, min_size=0)
    first, second = exchange(compression, gradients, variables_like(gradients), op=hvd.Sum)
    assert set(np.round(first.numpy(), 1)) <= {0, 2}
    assert (first.numpy() > 0).sum() == (20 if hasattr(sparsifier, "ratio") else 200)
    assert not second.numpy().any()


@pytest.mark.parametrize("min_size", [0, 1024])
@pytest.mark.parametrize("error_feedback", [False, True])
def test_a_constant_on_one_rank_is_not_folded_away(error_feedback, min_size):
    compression = lossless(error_feedback=error_feedback, min_size=min_size)
    variables = [tf.Variable(tf.zeros(4)) for _ in range(2)]
    varying = tf.Variable(tf.fill([4], MINE))

    @tf.function
    def run():
        gradient = tf.constant([MINE] * 4) if RANK == 0 else tf.identity(varying)
        return exchange(compression, [gradient, gradient], variables), exchange(compression, [gradient], ["tensor"])

    for _ in range(3):
        (first, second), (third,) = run()
        assert first.numpy().tolist() == second.numpy().tolist() == third.numpy().tolist() == [2] * 4


def test_a_result_that_nobody_uses_is_gathered_all_the_same():
    compression, variable = lossless(), tf.Variable(tf.zeros(4))

    @tf.function
    def run():
        (result,) = exchange(compression, [tf.fill([4], MINE)], [variable])
        return result if RANK == 0 else tf.zeros(4)

    for _ in range(2):
        run()
    assert compression.stats()["steps"] == 2


# Several exchanges.


@pytest.mark.parametrize("shared", [False, True], ids=["a compressor each", "one compressor"])
def test_two_models_with_an_optimizer_each_train_in_one_function(shared, assert_equal_on_both_ranks):
    compressions = [lossless()] * 2 if shared else [lossless(), lossless()]
    models = [[tf.Variable(tf.zeros([3, 2])), tf.Variable(tf.zeros([2]))] for _ in range(2)]
    optimizers = [
        hvd.DistributedOptimizer(tf.keras.optimizers.SGD(rate), compression=compression)
        for rate, compression in zip((0.1, 0.2), compressions, strict=True)
    ]

    @tf.function
    def step():
        for optimizer, model in zip(optimizers, models, strict=True):
            optimizer.apply_gradients([(tf.fill(v.shape, MINE), v) for v in model])

    for _ in range(3):
        step()
    for rate, model in zip((0.1, 0.2), models, strict=True):
        for variable in model:
            np.testing.assert_allclose(variable, np.full(variable.shape, -3 * rate * 2), rtol=1e-6)
            assert_equal_on_both_ranks(variable)


def test_a_rank_that_built_another_model_first_pairs_all_the_same():
    if RANK == 1:
        extra = tf.keras.Sequential([tf.keras.layers.Input((3,)), tf.keras.layers.Dense(2), tf.keras.layers.Dense(2)])
        extra.compile(hvd.DistributedOptimizer(tf.keras.optimizers.SGD(0.1), compression=lossless()), loss="mse")
    model = tf.keras.Sequential([tf.keras.layers.Input((3,)), tf.keras.layers.Dense(2)])
    compression = lossless()
    variables = [variable.value for variable in model.trainable_variables]
    results = exchange(compression, [tf.fill(v.shape, MINE) for v in variables], variables)
    assert all((result.numpy() == 2).all() for result in results)


def test_tensors_of_one_shape_without_names_are_not_mixed_up():
    compression = lossless()

    @tf.function
    def run():
        return [exchange(compression, [tf.fill([4], factor * MINE)], [None])[0] for factor in (1.0, 10.0, 100.0)]

    for _ in range(2):
        assert [result.numpy()[0] for result in run()] == [2, 20, 200]


# Ranks that do not agree.


def refused(compression, gradients, variables):
    """The error of an exchange, which must come within seconds."""
    begin = time.monotonic()
    with pytest.raises(tf.errors.OpError) as error:
        exchange(compression, gradients, variables)
    assert time.monotonic() - begin < 10
    return str(error.value)


def assert_the_next_exchange_works():
    (result,) = exchange(lossless(), [tf.fill([4], MINE)], [tf.Variable(tf.zeros(4))])
    assert result.numpy().tolist() == [2] * 4


OTHERS = {
    "ratio": [{"sparsifier": TopK(0.1)}, {"sparsifier": TopK(0.2)}],
    "bits": [{"value": QSGD(bits=8)}, {"value": QSGD(bits=4)}],
    "value codec": [{"value": QSGD()}, {"value": LogQuantizer()}],
    "index codec": [{"index": Rice()}, {"index": Bitmap()}],
    "sparsifier": [{"sparsifier": TopK(0.1)}, {"sparsifier": RandomK(0.1)}],
    "seed": [{"seed": 0}, {"seed": 1}],
    "error feedback": [{"error_feedback": True}, {"error_feedback": False}],
    "min_size": [{"min_size": 100}, {"min_size": 500}],
    "bucket_bytes": [{"bucket_bytes": 1}, {"bucket_bytes": 2**20}],
}


@pytest.mark.parametrize("what", OTHERS)
def test_ranks_with_another_configuration_are_told_so_at_once(what):
    gradients = [normal(1000), normal(300)]
    variables = variables_like(gradients)
    message = refused(DeepReduce(**{"min_size": 100, **OTHERS[what][RANK]}), gradients, variables)
    assert f"the frame of rank {1 - RANK}" in message
    assert "expected" in message and "received" in message
    assert "same model, order of variables and DeepReduce configuration" in message
    assert_the_next_exchange_works()


def test_ranks_of_which_one_sends_all_densely_are_told_so_at_once():
    gradients = [normal(1000), normal(300)]
    message = refused(DeepReduce(min_size=[0, 10**6][RANK]), gradients, variables_like(gradients))
    assert "Mismatched" in message
    assert_the_next_exchange_works()


def test_a_gradient_of_another_size_is_named_by_rank_and_segment_with_both_sizes():
    compression = lossless()

    @tf.function(input_signature=[tf.TensorSpec([None]), tf.TensorSpec([None])])
    def run(first, second):
        return exchange(compression, [first, second], ["first", "second"])

    with pytest.raises(tf.errors.DataLossError) as error:
        run(tf.zeros([40 + RANK]), tf.zeros([7]))
    assert f"the frame of rank {1 - RANK}" in str(error.value)
    assert f"segment 1, expected {40 + RANK}, received {41 - RANK}" in str(error.value)
    assert_the_next_exchange_works()


def test_ranks_with_variables_of_one_shape_in_another_order_are_told_so_at_once():
    names = ["gamma", "beta"] if RANK == 0 else ["beta", "gamma"]
    variables = [tf.Variable(tf.zeros(2000), name=name) for name in names]
    message = refused(DeepReduce(), [normal(2000), normal(2000)], variables)
    assert f"the frame of rank {1 - RANK}" in message


# Stages of an application.


class Bytes(IndexCodec):
    """Writes each index as int32."""

    def encode(self, indices, segments):
        code = tf.reshape(tf.bitcast(indices.values, tf.uint8), [-1])
        return tf.RaggedTensor.from_row_splits(code, 4 * indices.row_splits), indices

    def decode(self, code, counts, segments):
        return tf.RaggedTensor.from_row_lengths(tf.bitcast(tf.reshape(code.values, [-1, 4]), tf.int32), counts)


class First(IndexCodec):
    """Sends at most the first five elements: a codec that changes the support. Its code is the count."""

    lossless = False

    def encode(self, indices, segments):
        return tf.cast(indices[:, :0], tf.uint8), self.decode(None, tf.minimum(indices.row_lengths(), 5), segments)

    def decode(self, code, counts, segments):
        return tf.cast(tf.ragged.range(counts), tf.int32)


class Signs(ValueCodec):
    """Writes the signs, one byte each, and decodes to plus and minus one."""

    def encode(self, values, seed, step):
        code = tf.cast(values > 0, tf.uint8)
        return code, self.decode(code, values.row_lengths())

    def decode(self, code, counts):
        return tf.where(code > 0, 1.0, -1.0)


class Positive(Sparsifier):
    """Keeps what is above a limit."""

    def __init__(self, limit: float = 1.0):
        self.limit = limit

    def keep(self, acc, step):
        return tf.cast(tf.where(acc > self.limit)[:, 0], tf.int32)


OWN = [
    {"index": Bytes()},
    {"value": Signs()},
    {"sparsifier": Positive(1.0)},
    {"index": First()},
    {"sparsifier": Positive(0.5), "index": Bytes(), "value": Signs()},
    {"sparsifier": RandomK(0.1), "value": Signs()},
]


@pytest.mark.parametrize("stages", OWN, ids=repr)
def test_stages_written_in_python_exchange_and_lose_nothing(call, stages, assert_equal_on_both_ranks):
    compression = DeepReduce(**{"sparsifier": TopK(0.1), "value": "float32", "min_size": 0, **stages})
    shapes = [(20, 10), (300,)]
    variables = [tf.Variable(tf.zeros(shape)) for shape in shapes]
    sent, owed = [np.zeros(shape) for shape in shapes], [np.zeros(shape) for shape in shapes]
    for step in range(4):
        gradients = [normal(*shape, seed=step) for shape in shapes]
        results = call(compression, gradients, variables, op=hvd.Sum)
        assert_equal_on_both_ranks(*results)
        sent = [a + b.numpy() for a, b in zip(sent, results, strict=True)]
        owed = [a + b.numpy() for a, b in zip(owed, gradients, strict=True)]
    for arrived, mine, residual in zip(sent, owed, compression.error_feedback.residuals().values(), strict=True):
        expected = hvd.allreduce(mine - residual.numpy(), op=hvd.Sum)
        np.testing.assert_allclose(arrived, expected, atol=1e-4)
    assert any(np.any(arrived) for arrived in sent)


def test_index_codecs_written_in_python_give_what_the_built_in_ones_give(call):
    gradients = [normal(200), normal(300)]
    variables = variables_like(gradients)
    own, built_in = (DeepReduce(TopK(0.1), index, "float32", min_size=0) for index in (Bytes(), Rice()))
    for _ in range(2):
        for a, b in zip(call(own, gradients, variables), call(built_in, gradients, variables), strict=True):
            np.testing.assert_array_equal(a, b)


def test_a_compressor_with_own_stages_can_be_called_on_one_gradient_without_exchange():
    if RANK == 0:
        compression = DeepReduce(TopK(ratio=0.3), index=Bytes(), value="float32")
        assert compression([3.0, -2.0, 0.0]).numpy().tolist() == [3, 0, 0]


def test_what_is_not_finite_passes_through_a_sparsifier_written_in_python():
    compression = DeepReduce(Positive(0.5), value="float32", min_size=0)
    gradient = tf.tensor_scatter_nd_update(normal(50), [[30]], [np.nan if RANK == 1 else 0.0])
    variables = variables_like([gradient])
    (result,) = exchange(compression, [gradient], variables)
    assert np.isnan(result.numpy()[30])
    (residual,) = compression.error_feedback.residuals().values()
    assert bool(residual.numpy().any()) == (RANK == 0)
    assert np.isfinite(exchange(compression, [tf.ones(50)], variables)[0]).all()
