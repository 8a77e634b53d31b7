"""`DistributedGradientTape`, eager and in functions, with plain and Keras 3 variables."""

import horovod.tensorflow as hvd
import keras
import linear_model
import numpy as np
import pytest
import tensorflow as tf
from whole_compressor import Whole

RANK = hvd.rank()


@pytest.fixture(params=["tf.Variable", "keras.Variable"])
def make_variable(request):
    return tf.Variable if request.param == "tf.Variable" else keras.Variable


def mine(weight):
    """A loss whose gradient is 1 on rank 0 and 3 on rank 1, times the weight."""
    return lambda variable: tf.reduce_sum(tf.convert_to_tensor(variable)) * (1.0 + 2.0 * RANK) * weight


def gradient(sources, loss, compression, eager=True, **options):
    def step():
        with tf.GradientTape() as tape:
            value = loss()
        tape = hvd.DistributedGradientTape(tape, compression=compression, **options)
        return tape.gradient(value, sources)

    return step() if eager else tf.function(step)()


@pytest.mark.parametrize("eager", [True, False])
def test_a_training_loop_trains_on_the_data_of_both_ranks(make_variable, compression, tolerance, eager, assert_equal_on_both_ranks):
    weights = make_variable(linear_model.WEIGHTS.astype("float32"))
    x, y = linear_model.data(RANK)

    def step():
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((x @ tf.convert_to_tensor(weights) - y) ** 2)
        tape = hvd.DistributedGradientTape(tape, compression=compression)  # a new one each step, as Horovod has it
        (g,) = tape.gradient(loss, [weights])
        weights.assign(tf.convert_to_tensor(weights) - 0.1 * g)

    step = step if eager else tf.function(step)
    for _ in range(4):
        step()
    np.testing.assert_allclose(np.asarray(weights), linear_model.train([0, 1], 4), atol=tolerance)
    assert np.abs(np.asarray(weights) - linear_model.train([RANK], 4)).max() > 0.01
    assert_equal_on_both_ranks(np.asarray(weights))


@pytest.mark.parametrize("eager", [True, False])
@pytest.mark.parametrize(("op", "expected"), [(hvd.Average, 2.0), (hvd.Sum, 4.0)])
def test_a_single_source_gives_a_single_gradient(make_variable, compression, eager, op, expected):
    source = make_variable([0.0])
    result = gradient(source, lambda: mine(1.0)(source), compression, eager, op=op)
    assert result.numpy().tolist() == [expected]


def test_a_nest_of_sources_gives_the_same_nest_of_gradients(make_variable, compression):
    sources = {"a": make_variable([0.0]), "b": (make_variable([0.0]), [make_variable([0.0])])}
    loss = lambda: mine(1.0)(sources["a"]) + mine(2.0)(sources["b"][0]) + mine(3.0)(sources["b"][1][0])  # noqa: E731
    result = gradient(sources, loss, compression)
    assert result["a"].numpy().tolist() == [2.0]
    assert result["b"][0].numpy().tolist() == [4.0]
    assert result["b"][1][0].numpy().tolist() == [6.0]


def test_unconnected_sources_keep_their_none(make_variable, compression):
    used, unused = make_variable([0.0]), make_variable([0.0])
    first, second = gradient([unused, used], lambda: mine(1.0)(used), compression)
    assert first is None
    assert second.numpy().tolist() == [2.0]


def test_predivide_factor_leaves_the_average_as_it_is(compression):
    source = tf.Variable([0.0])
    assert gradient(source, lambda: mine(1.0)(source), compression, gradient_predivide_factor=4.0).numpy().tolist() == [2.0]


def test_local_sources_keep_their_gradient(make_variable, compression):
    shared, local = make_variable([0.0]), make_variable([0.0])
    with tf.GradientTape() as tape:
        loss = mine(1.0)(shared) + mine(1.0)(local)
    tape = hvd.DistributedGradientTape(tape, compression=compression)
    tape.register_local_source(local)
    ((of_local, local_gradient),), ((of_shared, shared_gradient),) = tape.get_local_and_global_gradients(loss, [local, shared])
    assert of_local is local and of_shared is shared
    assert local_gradient.numpy().tolist() == [(1.0 + 2.0 * RANK) / 2]
    assert shared_gradient.numpy().tolist() == [2.0]


def test_local_layers_of_a_partial_tape_keep_their_gradient(compression):
    layers = [keras.layers.Dense(1, use_bias=False) for _ in range(2)]
    for layer in layers:
        layer.build((None, 1))
    with tf.GradientTape() as tape:
        loss = sum(mine(1.0)(layer.kernel) for layer in layers)
    tape = hvd.PartialDistributedGradientTape(tape, compression=compression, local_layers=layers[0])
    local, shared = tape.gradient(loss, [layer.kernel for layer in layers])
    assert local.numpy().tolist() == [[(1.0 + 2.0 * RANK) / 2]]
    assert shared.numpy().tolist() == [[2.0]]


def test_only_members_of_the_process_set_exchange(compression, only_rank_0):
    source = tf.Variable([0.0])
    result = gradient(source, lambda: mine(1.0)(source), compression, process_set=only_rank_0)
    assert result.numpy().tolist() == [1.0 + 2.0 * RANK]


def test_slices_for_keras_variables_have_each_id_once(compression):
    table = keras.Variable(np.ones((5, 2), "float32"))
    ids = tf.constant([[2, 0, 2], [2, 3, 3]][RANK])
    result = gradient(table, lambda: tf.reduce_sum(tf.gather(table.value, ids)), compression)
    assert isinstance(result, tf.IndexedSlices)
    present = result.indices.numpy().tolist()
    assert present == sorted(set(present))
    np.testing.assert_allclose(tf.convert_to_tensor(result)[:, 0], [0.5, 0, 1.5, 1.0, 0])


@pytest.mark.parametrize(
    ("compression", "merges"),
    [("none", 1), ("gathered", 1), ("deepreduce", 2)],  # stock Horovod sends duplicates; Whole decodes to all rows
    indirect=["compression"],
)
def test_slices_for_keras_variables_are_merged_at_most_once_before_and_once_after(compression, merges):
    """Counts the sorted sums over duplicate ids, which is what a merge consists of, in the graph of a step."""
    table = keras.Variable(np.ones((5, 2), "float32"))

    @tf.function
    def step(ids):
        return gradient(table, lambda: tf.reduce_sum(tf.gather(table.value, ids)), compression)

    graph = step.get_concrete_function(tf.TensorSpec([3], tf.int32)).graph
    assert [op.type for op in graph.get_operations()].count("SegmentSum") == merges


def test_slices_of_local_keras_sources_have_each_id_once(compression):
    table = keras.Variable(np.ones((5, 2), "float32"))
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.gather(table.value, [4, 1, 4])) * (1.0 + RANK)
    tape = hvd.DistributedGradientTape(tape, compression=compression)
    tape.register_local_source(table)
    result = tape.gradient(loss, table)
    assert result.indices.numpy().tolist() == [1, 4]
    np.testing.assert_allclose(result.values[:, 0], [0.5 * (1 + RANK), 1.0 + RANK])


def test_xla_is_refused_with_the_fix(compression):
    source = tf.Variable([0.0])

    @tf.function(jit_compile=True)
    def step():
        with tf.GradientTape() as tape:
            value = mine(1.0)(source)
        return hvd.DistributedGradientTape(tape, compression=compression).gradient(value, source)

    with pytest.raises(ValueError, match="jit_compile=False"):
        step()


@pytest.mark.parametrize("op", [hvd.Adasum, hvd.Min, hvd.Max, hvd.Product])
def test_other_reductions_of_gathered_gradients_are_refused(op):
    with pytest.raises(ValueError, match="Average"):
        hvd.DistributedGradientTape(tf.GradientTape(), compression=Whole(), op=op)
