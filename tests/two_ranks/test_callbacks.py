"""Horovod's callbacks with Keras 3 models."""

import horovod.keras.callbacks as keras_callbacks
import horovod.tensorflow as hvd
import horovod.tensorflow.keras.callbacks as tensorflow_keras_callbacks
import keras
import linear_model
import numpy as np
import pytest
import tensorflow as tf
from whole_compressor import Whole

RANK = hvd.rank()


@pytest.fixture(params=[keras_callbacks, tensorflow_keras_callbacks], ids=["horovod.keras", "horovod.tensorflow.keras"])
def callbacks(request):
    return request.param


def model_of(layers, optimizer, **compile_options):
    model = keras.Sequential([keras.Input((3,)), *layers])
    model.compile(optimizer, loss="mse", **compile_options)
    return model


def fit(model, callbacks, **options):
    x, y = linear_model.data(RANK)
    return model.fit(x, y, batch_size=options.pop("batch_size", 8), shuffle=False, verbose=0, callbacks=callbacks, **options)


def test_broadcast_gives_all_ranks_the_weights_and_slots_of_the_root(callbacks, assert_equal_on_both_ranks):
    keras.utils.set_random_seed(RANK)
    optimizer = hvd.DistributedOptimizer(keras.optimizers.Adam(0.01))
    model = model_of([keras.layers.Dense(4), keras.layers.BatchNormalization(), keras.layers.Dense(2)], optimizer)
    before = model.get_weights()[0]
    assert not np.array_equal(*hvd.allgather_object(before))
    fit(model, [callbacks.BroadcastGlobalVariablesCallback(0)], epochs=1)
    assert_equal_on_both_ranks(*model.get_weights(), *model.optimizer.variables)


def test_broadcast_reaches_a_rank_that_built_another_model_before(callbacks, assert_equal_on_both_ranks):
    if RANK == 0:
        model_of([keras.layers.Dense(4)], keras.optimizers.Adam(0.01)).optimizer.build([keras.Variable([0.0])])
    keras.utils.set_random_seed(RANK)
    model = model_of([keras.layers.Dense(2)], hvd.DistributedOptimizer(keras.optimizers.Adam(0.01), compression=Whole()))
    fit(model, [callbacks.BroadcastGlobalVariablesCallback(0)], epochs=2)
    assert_equal_on_both_ranks(*model.get_weights(), *model.optimizer.variables)


def test_broadcast_leaves_what_the_compressor_keeps_alone(callbacks):
    compression = Whole()
    compression.residual = tf.Variable(1.0 * RANK)
    model = model_of([keras.layers.Dense(2)], hvd.DistributedOptimizer(keras.optimizers.SGD(0.1), compression=compression))
    fit(model, [callbacks.BroadcastGlobalVariablesCallback(0)], epochs=1)
    assert float(compression.residual) == RANK


def test_broadcast_leaves_local_variables_and_accumulated_gradients_alone(callbacks):
    model = model_of([keras.layers.Dense(2)], hvd.DistributedOptimizer(keras.optimizers.SGD(0.0), backward_passes_per_step=2))
    kernel, bias = model.layers[0].kernel, model.layers[0].bias
    kernel.assign(np.full((3, 2), RANK, "float32"))
    bias.assign([RANK, RANK])
    fit(model, [callbacks.BroadcastGlobalVariablesCallback(1, local_variables=[bias])], epochs=1)
    assert np.asarray(kernel).tolist() == [[1.0, 1.0]] * 3
    assert np.asarray(bias).tolist() == [RANK, RANK]
    accumulated = np.asarray(model.optimizer._accumulated_gradients[0])
    assert not np.array_equal(*hvd.allgather_object(accumulated))


def test_broadcast_variables_takes_keras_variables():
    for inplace in (False, True):
        variables = [keras.Variable([1.0 * RANK]), tf.Variable([2.0 * RANK])]
        hvd.broadcast_variables(variables, root_rank=1, inplace=inplace)
        assert [float(v[0]) for v in variables] == [1.0, 2.0]


def test_metrics_are_averaged_over_the_ranks(callbacks):
    model = model_of([keras.layers.Dense(2, kernel_initializer="ones")], keras.optimizers.SGD(0.0), metrics=["mae"])
    alone = fit(model, [], epochs=1).history
    together = fit(model, [callbacks.MetricAverageCallback()], epochs=1, validation_data=linear_model.data(RANK)).history
    for name in ("loss", "mae"):
        assert together[name][0] == pytest.approx(np.mean(hvd.allgather_object(alone[name][0])))
        assert together[name][0] != pytest.approx(alone[name][0], rel=1e-3)
    assert together["val_loss"][0] == pytest.approx(together["loss"][0], rel=1e-5)


@pytest.mark.parametrize("wrap", [lambda o: o, keras.optimizers.LossScaleOptimizer])
def test_warmup_goes_from_a_share_of_the_learning_rate_to_all_of_it(callbacks, wrap, capsys):
    model = model_of([keras.layers.Dense(2)], wrap(hvd.DistributedOptimizer(keras.optimizers.SGD(0.4))))
    warmup = callbacks.LearningRateWarmupCallback(initial_lr=0.4, warmup_epochs=2, verbose=1)
    history = fit(model, [warmup], epochs=3, batch_size=2).history
    # 4 steps in an epoch, 8 of warm-up; after step n it is 0.4 / 2 * (1 + n / 8)
    assert history["lr"] == pytest.approx([0.3, 0.4, 0.4])
    assert ("warmed up to 0.4" in capsys.readouterr().out) == (RANK == 0)


def test_schedule_sets_the_learning_rate_by_epoch(callbacks):
    model = model_of([keras.layers.Dense(2)], hvd.DistributedOptimizer(keras.optimizers.SGD(0.4)))
    schedule = callbacks.LearningRateScheduleCallback(initial_lr=0.4, multiplier=lambda epoch: 0.1**epoch, start_epoch=1)
    assert fit(model, [schedule], epochs=3).history["lr"] == pytest.approx([0.4, 0.04, 0.004])


@pytest.mark.parametrize("optimizer_class", [keras.optimizers.SGD, keras.optimizers.RMSprop])
def test_momentum_is_corrected_when_the_learning_rate_changes(callbacks, optimizer_class):
    def velocity_after(correction):
        model = model_of([keras.layers.Dense(2, use_bias=False)], optimizer_class(0.4, momentum=0.9))
        model.set_weights([linear_model.WEIGHTS.astype("float32")])
        fit(model, [], epochs=1)
        before = np.asarray(model.optimizer.variables[-1])
        schedule = callbacks.LearningRateScheduleCallback(initial_lr=0.4, multiplier=lambda _: 0.0, momentum_correction=correction)
        fit(model, [schedule], epochs=1)
        return before, np.asarray(model.optimizer.variables[-1])

    before, after = velocity_after(correction=False)
    np.testing.assert_allclose(after, 0.9 * before, rtol=1e-5)
    _, after = velocity_after(correction=True)
    np.testing.assert_array_equal(after, np.zeros_like(after))
