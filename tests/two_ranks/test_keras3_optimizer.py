"""Keras 3 optimizers: what they exchange, when, and what Keras still makes of them."""

import subprocess
import sys
import warnings

import horovod.keras as hvd_keras
import horovod.tensorflow as hvd
import keras
import linear_model
import numpy as np
import pytest
import tensorflow as tf
from whole_compressor import Whole

from horovod_ext import indexed_slices

RANK = hvd.rank()


def linear_keras_model():
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2, use_bias=False)])
    model.set_weights([linear_model.WEIGHTS.astype("float32")])
    return model


def fit(optimizer, steps, **compile_options):
    model = linear_keras_model()
    model.compile(optimizer, loss="mse", **compile_options)
    x, y = linear_model.data(RANK)
    model.fit(x, y, batch_size=8, epochs=steps, shuffle=False, verbose=0)
    return model


def one_step(optimizer, *gradients):
    """Applies a gradient to each of as many zero variables, in a graph."""
    variables = [keras.Variable(np.zeros_like(np.asarray(g, "float32")), name="same_name") for g in gradients]
    optimizer.build(variables)
    tf.function(lambda: optimizer.apply([tf.constant(g, tf.float32) for g in gradients], variables))()
    return [np.asarray(v) for v in variables]


@pytest.mark.parametrize("compression", ["none", "fp16", "gathered", "deepreduce"], indirect=True)
def test_fit_trains_on_the_data_of_both_ranks(path, compression, tolerance, assert_equal_on_both_ranks):
    model = fit(path.DistributedOptimizer(keras.optimizers.SGD(0.1, momentum=0.5), compression=compression), steps=6)
    weights = model.get_weights()[0]
    np.testing.assert_allclose(weights, linear_model.train([0, 1], 6, momentum=0.5), atol=tolerance)
    assert np.abs(weights - linear_model.train([RANK], 6, momentum=0.5)).max() > 0.01
    assert_equal_on_both_ranks(weights)


def test_fit_eagerly_trains_on_the_data_of_both_ranks(compression, tolerance, assert_equal_on_both_ranks):
    model = fit(hvd.DistributedOptimizer(keras.optimizers.SGD(0.1), compression=compression), steps=3, run_eagerly=True)
    np.testing.assert_allclose(model.get_weights()[0], linear_model.train([0, 1], 3), atol=tolerance)
    assert_equal_on_both_ranks(*model.get_weights())


@pytest.mark.parametrize(("op", "expected"), [(hvd.Average, -2.0), (hvd.Sum, -4.0)])
def test_gradients_1_and_3_give_2_averaged_and_4_summed(path, compression, op, expected):
    optimizer = path.DistributedOptimizer(keras.optimizers.SGD(1.0), compression=compression, op=op)
    assert one_step(optimizer, [1.0 + 2.0 * RANK])[0].tolist() == [expected]


def test_predivide_factor_leaves_the_average_as_it_is(path, compression):
    optimizer = path.DistributedOptimizer(keras.optimizers.SGD(1.0), compression=compression, gradient_predivide_factor=2.0)
    assert one_step(optimizer, [1.0 + 2.0 * RANK])[0].tolist() == [-2.0]


def test_predivide_factor_with_a_sum_is_refused(path):
    with pytest.raises(ValueError, match="gradient_predivide_factor"):
        path.DistributedOptimizer(keras.optimizers.SGD(1.0), op=hvd.Sum, gradient_predivide_factor=2.0)


@pytest.mark.parametrize(
    ("clipping", "expected"),
    [({"clipnorm": 1.0}, [-0.6, -0.8]), ({"global_clipnorm": 1.0}, [-0.6, -0.8]), ({"clipvalue": 1.0}, [-1.0, -1.0])],
)
def test_clipping_applies_to_the_reduced_gradient(compression, clipping, expected):
    optimizer = hvd.DistributedOptimizer(keras.optimizers.SGD(1.0, **clipping), compression=compression)
    (weights,) = one_step(optimizer, [[3.0, 0.0], [0.0, 4.0]][RANK])  # the mean is [1.5, 2]
    np.testing.assert_allclose(weights, expected, rtol=1e-6)


@pytest.mark.parametrize(("average", "expected"), [(False, -4.0 * 2), (True, -4.0)])
@pytest.mark.parametrize("eager", [False, True])
def test_backward_passes_are_accumulated_before_one_exchange(compression, average, expected, eager):
    optimizer = hvd.DistributedOptimizer(
        keras.optimizers.SGD(1.0), compression=compression, backward_passes_per_step=2, average_aggregated_gradients=average
    )
    variable = keras.Variable([0.0])
    optimizer.build([variable])
    step = lambda g: optimizer.apply([g], [variable])  # noqa: E731
    step = step if eager else tf.function(step)
    step(tf.constant([1.0 + 2.0 * RANK]))  # mean over the ranks: 2
    assert float(variable[0]) == 0.0
    step(tf.constant([5.0 + 2.0 * RANK]))  # 6
    assert float(variable[0]) == expected


def test_backward_passes_that_contradict_the_optimizer_are_refused():
    with pytest.raises(ValueError, match="gradient_accumulation_steps=3"):
        hvd.DistributedOptimizer(keras.optimizers.SGD(1.0, gradient_accumulation_steps=3), backward_passes_per_step=2)


@pytest.mark.parametrize(("scale", "share"), [(True, 0.5), (False, 1.0)])
def test_gradients_of_local_variables_stay_on_their_rank(compression, scale, share):
    optimizer = hvd.DistributedOptimizer(keras.optimizers.SGD(1.0), compression=compression, scale_local_gradients=scale)
    shared, local = keras.Variable([0.0]), keras.Variable([0.0])
    optimizer.build([shared, local])
    optimizer.register_local_var(local)
    gradient = tf.constant([1.0 + 2.0 * RANK])
    optimizer.apply([gradient, gradient], [shared, local])
    assert float(shared[0]) == -2.0
    assert float(local[0]) == -share * (1.0 + 2.0 * RANK)


@pytest.mark.parametrize("kind", ["number", "lists"])
def test_groups_of_variables_with_one_name_are_each_reduced(compression, kind):
    variables = [keras.Variable([0.0], name="kernel") for _ in range(3)]
    optimizer = hvd.DistributedOptimizer(
        keras.optimizers.SGD(1.0), compression=compression, groups=2 if kind == "number" else [variables[:2]]
    )
    optimizer.build(variables)
    tf.function(lambda: optimizer.apply([tf.constant([(i + 1.0) * (1 + 2 * RANK)]) for i in range(3)], variables))()
    assert [float(v[0]) for v in variables] == [-2.0, -4.0, -6.0]


def test_local_layers_of_a_partial_optimizer_stay_on_their_rank(compression):
    layers = [keras.layers.Dense(1, use_bias=False, kernel_initializer="zeros") for _ in range(2)]
    for layer in layers:
        layer.build((None, 1))
    kernels = [layer.kernel for layer in layers]
    optimizer = hvd_keras.PartialDistributedOptimizer(keras.optimizers.SGD(1.0), compression=compression, local_layers=layers[0])
    optimizer.build(kernels)
    optimizer.apply([tf.constant([[1.0 + 2.0 * RANK]])] * 2, kernels)
    assert [float(k[0, 0]) for k in kernels] == [-(1.0 + 2.0 * RANK) / 2, -2.0]


def test_a_rank_that_built_another_model_first_pairs_with_the_others(compression, assert_equal_on_both_ranks):
    if RANK == 1:  # shifts the numbers that Keras puts into names
        keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)]).compile(keras.optimizers.SGD(), loss="mse")
        keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(0.1))
    optimizer = hvd.DistributedOptimizer(keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(0.1)), compression=compression)
    model = fit(optimizer, steps=2)
    np.testing.assert_allclose(model.get_weights()[0], linear_model.train([0, 1], 2), atol=1e-5)
    assert_equal_on_both_ranks(*model.get_weights())


def test_two_optimizers_in_one_step_do_not_mix(compression):
    variables = [keras.Variable([0.0]) for _ in range(2)]
    optimizers = [
        keras.optimizers.LossScaleOptimizer(hvd.DistributedOptimizer(keras.optimizers.SGD(1.0), compression=compression), initial_scale=1.0)
        for _ in range(2)
    ]

    @tf.function
    def step():
        for i, (optimizer, variable) in enumerate(zip(optimizers, variables, strict=True)):
            optimizer.apply([tf.constant([(1.0 + 2.0 * RANK) * (i + 1)])], [variable])

    for optimizer, variable in zip(optimizers, variables, strict=True):
        optimizer.build([variable])
    for _ in range(3):
        step()
    assert [float(v[0]) for v in variables] == [-6.0, -12.0]


def test_only_members_of_the_process_set_exchange(compression, only_rank_0):
    optimizer = hvd.DistributedOptimizer(keras.optimizers.SGD(1.0), compression=compression, process_set=only_rank_0)
    assert one_step(optimizer, [1.0 + 2.0 * RANK])[0].tolist() == [-1.0 - 2.0 * RANK]
    # What only some ranks exchanged must not shift the names of what all exchange next.
    optimizer = hvd.DistributedOptimizer(keras.optimizers.SGD(1.0), compression=compression)
    assert one_step(optimizer, [1.0 + 2.0 * RANK])[0].tolist() == [-2.0]


@pytest.mark.parametrize("sparse_as_dense", [False, True])
@pytest.mark.parametrize("optimizer_class", [keras.optimizers.SGD, keras.optimizers.Adam, keras.optimizers.Adagrad])
def test_duplicate_ids_count_once_with_their_sum(compression, tolerance, sparse_as_dense, optimizer_class, assert_equal_on_both_ranks):
    ids = [[2, 0, 2], [2, 3, 3]][RANK]
    table = keras.Variable(np.zeros((5, 2), "float32"))
    optimizer = hvd.DistributedOptimizer(optimizer_class(0.1), compression=compression, sparse_as_dense=sparse_as_dense)
    optimizer.build([table])
    values = np.arange(6, dtype="float32").reshape(3, 2) + 1 + RANK

    @tf.function
    def step():
        optimizer.apply([tf.IndexedSlices(tf.constant(values), tf.constant(ids), tf.constant([5, 2]))], [table])

    reference_table, reference = keras.Variable(np.zeros((5, 2), "float32")), optimizer_class(0.1)
    reference.build([reference_table])
    both = [np.zeros((5, 2), "float32") for _ in range(2)]
    for rank, rank_ids in enumerate([[2, 0, 2], [2, 3, 3]]):
        np.add.at(both[rank], rank_ids, np.arange(6, dtype="float32").reshape(3, 2) + 1 + rank)
    for _ in range(2):
        step()
        reference.apply([tf.constant(np.mean(both, 0))], [reference_table])
    np.testing.assert_allclose(np.asarray(table), np.asarray(reference_table), atol=tolerance)
    assert_equal_on_both_ranks(table)


@pytest.mark.parametrize(
    ("compression", "merges"),
    [("none", 2), ("fp16", 2), ("gathered", 1), ("deepreduce", 2)],  # Whole decodes to all rows, which is the sum merged already
    indirect=["compression"],
)
def test_slices_are_merged_once_before_they_are_sent_and_once_after(compression, merges):
    """Counts the sorted sums over duplicate ids, which is what a merge consists of, in the graph of an update."""
    table = keras.Variable(np.zeros((5, 2), "float32"))
    optimizer = hvd.DistributedOptimizer(keras.optimizers.SGD(0.1), compression=compression)
    optimizer.build([table])

    @tf.function
    def step(ids):
        optimizer.apply([tf.IndexedSlices(tf.ones([3, 2]), ids, tf.constant([5, 2]))], [table])

    def names_of(graph):
        return [op.type for op in graph.get_operations()] + [node.op for f in graph.as_graph_def().library.function for node in f.node_def]

    assert names_of(step.get_concrete_function(tf.TensorSpec([3], tf.int32)).graph).count("SegmentSum") == merges


@pytest.mark.parametrize("case", ["outside the process set", "local variable"])
def test_slices_that_stay_on_their_rank_are_merged_once(compression, case, only_rank_0, monkeypatch):
    seen = []
    monkeypatch.setattr(
        keras.optimizers.SGD, "_backend_update_step", lambda self, grads, trainable_variables, learning_rate: seen.extend(grads)
    )
    table = keras.Variable(np.zeros((5, 2), "float32"))
    options = {"process_set": only_rank_0} if case == "outside the process set" else {}
    optimizer = hvd.DistributedOptimizer(keras.optimizers.SGD(0.1), compression=compression, **options)
    optimizer.build([table])
    if case == "local variable":
        optimizer.register_local_var(table)
    elif RANK == 0:
        return
    merges = []
    merge = indexed_slices.merge
    monkeypatch.setattr(indexed_slices, "merge", lambda slices: merges.append(slices) or merge(slices))
    optimizer.apply([tf.IndexedSlices(tf.ones([3, 2]), tf.constant([4, 1, 4]), tf.constant([5, 2]))], [table])
    assert len(merges) == 1
    assert seen[0].indices.numpy().tolist() == [1, 4]
    assert seen[0].values.numpy().tolist() == ([[1.0, 1.0], [2.0, 2.0]] if options else [[0.5, 0.5], [1.0, 1.0]])


def test_xla_is_refused_with_the_fix(compression):
    with pytest.raises(ValueError, match="jit_compile=False"):
        fit(hvd.DistributedOptimizer(keras.optimizers.SGD(0.1), compression=compression), steps=1, jit_compile=True)


def test_automatic_jit_compile_resolves_to_false(monkeypatch):
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda *_: [type("GPU", (), {"device_type": "GPU"})])
    model = linear_keras_model()
    model.compile(keras.optimizers.SGD(0.1), loss="mse")
    assert model.jit_compile
    model.compile(hvd.DistributedOptimizer(keras.optimizers.SGD(0.1)), loss="mse")
    assert not model.jit_compile
    model.compile(keras.optimizers.LossScaleOptimizer(hvd.DistributedOptimizer(keras.optimizers.SGD(0.1))), loss="mse")
    assert not model.jit_compile


@keras.saving.register_keras_serializable("two_ranks", "Mine")
class RegisteredSGD(keras.optimizers.SGD):
    pass


LOAD_ALONE = """
import sys
for name in ("horovod", "horovod_ext", "deepreduce_tf"):
    sys.modules[name] = None
import keras
@keras.saving.register_keras_serializable("two_ranks", "Mine")
class RegisteredSGD(keras.optimizers.SGD):
    pass
for file, optimizer_class in (sys.argv[1], keras.optimizers.SGD), (sys.argv[2], RegisteredSGD):
    model = keras.models.load_model(file)
    assert type(model.optimizer) is optimizer_class, type(model.optimizer)
    assert float(abs(model.optimizer.momentums[0].numpy()).sum()) > 0
"""


def test_keras_files_load_as_the_plain_optimizer_where_horovod_is_not(tmp_path):
    files = []
    for optimizer_class in (keras.optimizers.SGD, RegisteredSGD):
        model = fit(hvd.DistributedOptimizer(optimizer_class(0.1, momentum=0.9), compression=Whole()), steps=2)
        files.append(tmp_path / f"{optimizer_class.__name__}.keras")
        model.save(files[-1])
        loaded = keras.models.load_model(files[-1])
        assert type(loaded.optimizer) is optimizer_class
        np.testing.assert_array_equal(loaded.optimizer.momentums[0], model.optimizer.momentums[0])
    if RANK == 0:  # a process that imports Keras takes seconds; the files of the other rank are the same
        subprocess.run([sys.executable, "-c", LOAD_ALONE, *files], check=True, timeout=100)


def test_load_model_distributes_the_optimizer_and_keeps_its_slots(path, compression, tolerance, tmp_path, assert_equal_on_both_ranks):
    if path is hvd:
        pytest.skip("horovod.tensorflow has no load_model")
    fit(hvd.DistributedOptimizer(keras.optimizers.SGD(0.1, momentum=0.5)), steps=3).save(tmp_path / "model.keras")
    model = path.load_model(tmp_path / "model.keras", compression=compression)
    model.fit(*linear_model.data(RANK), batch_size=8, epochs=3, shuffle=False, verbose=0)
    np.testing.assert_allclose(model.get_weights()[0], linear_model.train([0, 1], 6, momentum=0.5), atol=tolerance)
    assert_equal_on_both_ranks(*model.get_weights())


def test_the_compressor_is_found_by_a_checkpoint(tmp_path):
    compression = Whole()
    optimizer = hvd.DistributedOptimizer(keras.optimizers.SGD(0.1), compression=compression)
    assert optimizer.error_feedback is compression
    compression.kept = tf.Variable(3.0)
    saved = tf.train.Checkpoint(optimizer=optimizer)
    names = [name for name, _ in tf.train.list_variables(saved.save(str(tmp_path / "checkpoint")))]
    assert any("error_feedback/kept" in name for name in names), names


def test_a_built_optimizer_keeps_its_slots_schedule_and_exclusions():
    class Halving(keras.optimizers.schedules.LearningRateSchedule):  # cannot be made again from a configuration
        def __call__(self, step):
            return 0.5 ** (tf.cast(step, tf.float32) + 1)

        def get_config(self):
            return {}

    variable = keras.Variable([1.0], name="bias")
    plain = keras.optimizers.SGD(Halving(), momentum=0.5, weight_decay=0.1)
    plain.exclude_from_weight_decay(var_names=["bias"])
    plain.apply([tf.constant([1.0])], [variable])
    distributed = hvd.DistributedOptimizer(plain)
    assert int(distributed.iterations) == 1
    distributed.apply([tf.constant([1.0 + 2.0 * RANK])], [variable])
    # velocity -0.5, then 0.5 * -0.5 - 0.25 * 2
    assert float(variable[0]) == 1.0 - 0.5 - 0.75


def test_an_optimizer_whose_updates_bypass_the_exchange_is_an_error():
    class Bypass(keras.optimizers.SGD):
        def apply(self, grads, trainable_variables=None):
            pass

    class Renamed(keras.optimizers.SGD):
        _backend_update_step = None

    with pytest.raises(ValueError, match="Renamed"):
        hvd.DistributedOptimizer(Renamed(1.0))
    with pytest.raises(ValueError, match="Bypass"):
        one_step(hvd.DistributedOptimizer(Bypass(1.0)), [1.0])


def test_what_is_no_optimizer_is_refused(path):
    with pytest.raises(ValueError, match="Received: 'adam'"):
        path.DistributedOptimizer("adam")


def test_an_optimizer_is_distributed_only_once():
    with pytest.raises(ValueError, match="once"):
        hvd.DistributedOptimizer(hvd.DistributedOptimizer(keras.optimizers.SGD(1.0)))


@pytest.mark.parametrize("op", [hvd.Adasum, hvd.Min, hvd.Max, hvd.Product])
def test_other_reductions_of_gathered_gradients_are_refused(path, op):
    with pytest.raises(ValueError, match="Average"):
        path.DistributedOptimizer(keras.optimizers.SGD(1.0), compression=Whole(), op=op)


def test_gradients_that_are_none_leave_their_variable_alone(compression):
    variables = [keras.Variable([0.0]), keras.Variable([0.0])]
    optimizer = hvd.DistributedOptimizer(keras.optimizers.SGD(1.0), compression=compression)
    optimizer.build(variables)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        optimizer.apply([None, tf.constant([1.0 + 2.0 * RANK])], variables)
    assert [float(v[0]) for v in variables] == [0.0, -2.0]
