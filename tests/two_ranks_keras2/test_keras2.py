"""Keras 2 optimizers, new and legacy, with what Keras 3 shares the process with them."""

import horovod.tensorflow as hvd
import horovod.tensorflow.keras.callbacks as callbacks
import linear_model
import numpy as np
import pytest
import tensorflow as tf
from whole_compressor import Whole

RANK = hvd.rank()
LossScale = tf.keras.mixed_precision.LossScaleOptimizer


@pytest.fixture(params=["new", "legacy"])
def optimizers(request):
    return tf.keras.optimizers if request.param == "new" else tf.keras.optimizers.legacy


def linear_keras_model(**layer_options):
    model = tf.keras.Sequential([tf.keras.layers.Dense(2, use_bias=False, input_shape=(3,), **layer_options)])
    model.set_weights([linear_model.WEIGHTS.astype("float32")])
    return model


def fit(optimizer, epochs, callbacks=(), batch_size=8, **compile_options):
    model = linear_keras_model()
    model.compile(optimizer, loss="mse", **compile_options)
    x, y = linear_model.data(RANK)
    history = model.fit(x, y, batch_size=batch_size, epochs=epochs, shuffle=False, verbose=0, callbacks=list(callbacks)).history
    return model, history


def step_of(optimizer, variable):
    """A step whose gradient is the given one, the way `fit` takes it."""

    @tf.function
    def step(gradient):
        optimizer.minimize(lambda: tf.reduce_sum(variable * gradient), [variable])

    return step


def test_these_are_keras_2_optimizers(optimizers):
    import tf_keras

    assert issubclass(optimizers.SGD, tf_keras.optimizers.Optimizer | tf_keras.optimizers.legacy.Optimizer)


@pytest.mark.parametrize("compression", ["none", "fp16", "gathered", "deepreduce"], indirect=True)
def test_fit_trains_on_the_data_of_both_ranks(path, optimizers, compression, tolerance, assert_equal_on_both_ranks):
    model, _ = fit(path.DistributedOptimizer(optimizers.SGD(0.1, momentum=0.5), compression=compression), epochs=6)
    weights = model.get_weights()[0]
    np.testing.assert_allclose(weights, linear_model.train([0, 1], 6, momentum=0.5), atol=tolerance)
    assert np.abs(weights - linear_model.train([RANK], 6, momentum=0.5)).max() > 0.01
    assert_equal_on_both_ranks(weights)


@pytest.mark.parametrize(("op", "combine"), [(hvd.Average, np.mean), (hvd.Sum, np.sum)])
def test_an_average_averages_and_a_sum_sums(path, optimizers, compression, tolerance, op, combine):
    model, _ = fit(path.DistributedOptimizer(optimizers.SGD(0.1), compression=compression, op=op), epochs=2)
    np.testing.assert_allclose(model.get_weights()[0], linear_model.train([0, 1], 2, combine=combine), atol=tolerance)


@pytest.mark.parametrize(("op", "expected"), [(hvd.Average, -2.0), (hvd.Sum, -4.0)])
def test_gradients_1_and_3_give_2_averaged_and_4_summed(path, optimizers, compression, op, expected):
    variable = tf.Variable([0.0])
    step_of(path.DistributedOptimizer(optimizers.SGD(1.0), compression=compression, op=op), variable)(1.0 + 2.0 * RANK)
    assert variable.numpy().tolist() == [expected]


def test_predivide_factor_leaves_the_average_as_it_is(path, optimizers, compression, tolerance):
    optimizer = path.DistributedOptimizer(optimizers.SGD(0.1), compression=compression, gradient_predivide_factor=2.0)
    np.testing.assert_allclose(fit(optimizer, epochs=2)[0].get_weights()[0], linear_model.train([0, 1], 2), atol=tolerance)


def test_groups_are_reduced_through_horovod_tensorflow(optimizers, compression, tolerance):
    optimizer = hvd.DistributedOptimizer(optimizers.SGD(0.1), compression=compression, groups=1)
    np.testing.assert_allclose(fit(optimizer, epochs=2)[0].get_weights()[0], linear_model.train([0, 1], 2), atol=tolerance)


@pytest.mark.parametrize(("average", "passes"), [(False, 2), (True, 1)])
def test_backward_passes_are_accumulated_before_one_exchange(optimizers, compression, tolerance, average, passes):
    optimizer = hvd.DistributedOptimizer(
        optimizers.SGD(0.1), compression=compression, backward_passes_per_step=2, average_aggregated_gradients=average
    )
    model, _ = fit(optimizer, epochs=4)
    np.testing.assert_allclose(model.get_weights()[0], linear_model.train([0, 1], 2, learning_rate=0.1 * passes), atol=tolerance)


def test_local_variables_keep_their_gradient(optimizers, compression):
    optimizer = hvd.DistributedOptimizer(optimizers.SGD(1.0), compression=compression)
    shared, local = tf.Variable([0.0]), tf.Variable([0.0])
    optimizer.register_local_var(local)
    optimizer.minimize(lambda: tf.reduce_sum(shared + local) * (1.0 + 2.0 * RANK), [shared, local])
    assert shared.numpy().tolist() == [-2.0]
    assert local.numpy().tolist() == [-(1.0 + 2.0 * RANK) / 2]


ARRANGEMENTS = {
    "handed to us": lambda sgd, **options: hvd.DistributedOptimizer(LossScale(sgd, initial_scale=4.0), **options),
    "around ours": lambda sgd, **options: LossScale(hvd.DistributedOptimizer(sgd, **options), initial_scale=4.0),
}


@pytest.mark.parametrize("arrangement", ARRANGEMENTS)
def test_what_is_exchanged_is_unscaled_and_all_ranks_skip_together(arrangement, optimizers, compression, assert_equal_on_both_ranks):
    optimizer = ARRANGEMENTS[arrangement](optimizers.SGD(1.0), compression=compression)
    assert isinstance(optimizer, LossScale)
    seen = []
    reduce = optimizer.inner_optimizer._allreduce_grads
    optimizer.inner_optimizer._allreduce_grads = lambda g, v, *rest: (tf.py_function(seen.append, [g[0]], []), reduce(g, v, *rest))[1]
    variable = tf.Variable([0.0])
    step = step_of(optimizer, variable)
    for gradient in (1.0 + 2.0 * RANK, np.inf if RANK else 1.0, 1.0 + 2.0 * RANK):
        step(tf.constant(gradient))
    assert variable.numpy().tolist() == [-4.0]
    assert [float(g[0]) for g in seen] == [1.0 + 2.0 * RANK, np.inf if RANK else 1.0, 1.0 + 2.0 * RANK]
    assert float(optimizer.loss_scale) == 2.0
    assert_equal_on_both_ranks(variable, optimizer.loss_scale, optimizer.iterations, optimizer.dynamic_counter)


@pytest.mark.parametrize("arrangement", ARRANGEMENTS)
def test_ranks_agree_on_what_is_finite_while_each_accumulates(arrangement, optimizers, compression, assert_equal_on_both_ranks):
    optimizer = ARRANGEMENTS[arrangement](optimizers.SGD(1.0), compression=compression, backward_passes_per_step=2)
    variable = tf.Variable([0.0])
    step = step_of(optimizer, variable)
    for gradient in (np.inf if RANK else 1.0, 1.0, 1.0 + 2.0 * RANK, 1.0 + 2.0 * RANK):
        step(tf.constant(gradient))
    assert variable.numpy().tolist() == [-4.0]
    assert_equal_on_both_ranks(variable, optimizer.loss_scale, optimizer.dynamic_counter)


def test_mixed_float16_fit_trains_on_the_data_of_both_ranks(optimizers, compression, assert_equal_on_both_ranks):
    model = linear_keras_model(dtype=tf.keras.mixed_precision.Policy("mixed_float16"))
    model.compile(LossScale(hvd.DistributedOptimizer(optimizers.SGD(0.1), compression=compression)), loss="mse")
    x, y = linear_model.data(RANK)
    model.fit(x, y, batch_size=8, epochs=2, shuffle=False, verbose=0)
    np.testing.assert_allclose(model.get_weights()[0], linear_model.train([0, 1], 2), atol=5e-3)
    assert_equal_on_both_ranks(*model.get_weights())


def test_the_compressor_is_found_by_a_checkpoint(optimizers, tmp_path):
    compression = Whole()
    compression.kept = tf.Variable(3.0)
    optimizer = hvd.DistributedOptimizer(optimizers.SGD(0.1), compression=compression)
    names = [name for name, _ in tf.train.list_variables(tf.train.Checkpoint(optimizer=optimizer).save(str(tmp_path / "checkpoint")))]
    assert any("error_feedback/kept" in name for name in names), names


@pytest.mark.parametrize("file", ["model.keras", "model.h5", "model"])
def test_a_saved_model_loads_as_a_plain_one_with_its_slots(optimizers, file, tmp_path):
    model, _ = fit(hvd.DistributedOptimizer(optimizers.SGD(0.1, momentum=0.9), compression=Whole()), epochs=2)
    if file == "model.keras" and optimizers is not tf.keras.optimizers:
        pytest.skip("Keras 2 does not save legacy optimizers in this format")
    model.save(tmp_path / file)
    loaded = tf.keras.models.load_model(tmp_path / file)
    assert not hasattr(loaded.optimizer, "_allreduce_grads")
    np.testing.assert_array_equal(loaded.get_weights()[0], model.get_weights()[0])


def test_other_reductions_of_gathered_gradients_are_refused(path, optimizers):
    for op in (hvd.Adasum, hvd.Min, hvd.Max, hvd.Product):
        with pytest.raises(ValueError, match="Average"):
            path.DistributedOptimizer(optimizers.SGD(1.0), compression=Whole(), op=op)


@pytest.mark.parametrize("eager", [True, False])
def test_a_tape_trains_on_the_data_of_both_ranks(compression, tolerance, eager, assert_equal_on_both_ranks):
    model, optimizer = linear_keras_model(), tf.keras.optimizers.SGD(0.1)
    x, y = linear_model.data(RANK)

    def step():
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((model(x) - y) ** 2)
        gradients = hvd.DistributedGradientTape(tape, compression=compression).gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))

    step = step if eager else tf.function(step)
    for _ in range(4):
        step()
    np.testing.assert_allclose(model.get_weights()[0], linear_model.train([0, 1], 4), atol=tolerance)
    assert_equal_on_both_ranks(*model.get_weights())


def test_xla_is_refused_with_the_fix(optimizers):
    with pytest.raises(ValueError, match="jit_compile=False"):
        fit(hvd.DistributedOptimizer(optimizers.SGD(0.1), compression=Whole()), 1, jit_compile=True)


def test_broadcast_leaves_what_the_compressor_keeps_alone(optimizers):
    compression = Whole()
    compression.residual = tf.Variable(1.0 * RANK)
    fit(hvd.DistributedOptimizer(optimizers.SGD(0.1), compression=compression), 1, [callbacks.BroadcastGlobalVariablesCallback(0)])
    assert float(compression.residual) == RANK


def test_broadcast_gives_all_ranks_the_weights_and_slots_of_the_root(optimizers, assert_equal_on_both_ranks):
    model = linear_keras_model()
    model.set_weights([linear_model.WEIGHTS.astype("float32") * (1 + RANK)])
    model.compile(hvd.DistributedOptimizer(optimizers.SGD(0.1, momentum=0.9)), loss="mse")
    x, y = linear_model.data(RANK)
    model.fit(x, y, batch_size=8, shuffle=False, verbose=0, callbacks=[callbacks.BroadcastGlobalVariablesCallback(0)])
    assert_equal_on_both_ranks(*model.get_weights(), *model.optimizer.variables())


def test_metrics_are_averaged_over_the_ranks():
    _, alone = fit(tf.keras.optimizers.SGD(0.0), 1, metrics=["mae"])
    _, together = fit(tf.keras.optimizers.SGD(0.0), 1, [callbacks.MetricAverageCallback()], metrics=["mae"])
    for name in ("loss", "mae"):
        assert together[name][0] == pytest.approx(np.mean(hvd.allgather_object(alone[name][0])))
        assert together[name][0] != pytest.approx(alone[name][0], rel=1e-3)


def test_warmup_goes_from_a_share_of_the_learning_rate_to_all_of_it(optimizers):
    warmup = callbacks.LearningRateWarmupCallback(initial_lr=0.4, warmup_epochs=2)
    optimizer = hvd.DistributedOptimizer(optimizers.SGD(0.4, momentum=0.9))
    assert fit(optimizer, 3, [warmup], batch_size=2)[1]["lr"] == pytest.approx([0.3, 0.4, 0.4])


def test_schedule_corrects_the_momentum(optimizers):
    schedule = callbacks.LearningRateScheduleCallback(initial_lr=0.4, multiplier=lambda _: 0.0, start_epoch=1)
    model, history = fit(optimizers.SGD(0.4, momentum=0.9), 2, [schedule])
    assert history["lr"] == pytest.approx([0.4, 0.0])
    assert model.optimizer.variables()[-1].numpy().tolist() == np.zeros((3, 2)).tolist()
