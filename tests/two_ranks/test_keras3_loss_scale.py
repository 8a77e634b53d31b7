"""Keras 3 loss scaling: ranks skip the same steps, and exchange gradients as they are without it."""

import horovod.tensorflow as hvd
import keras
import linear_model
import numpy as np
import pytest
import tensorflow as tf

RANK = hvd.rank()
LossScale = keras.optimizers.LossScaleOptimizer

ARRANGEMENTS = {
    "handed to us": lambda sgd, **options: hvd.DistributedOptimizer(LossScale(sgd, initial_scale=4.0), **options),
    "around ours": lambda sgd, **options: LossScale(hvd.DistributedOptimizer(sgd, **options), initial_scale=4.0),
}


@pytest.mark.parametrize("arrangement", ARRANGEMENTS)
@pytest.mark.parametrize("position", [0, 1, 2])
def test_all_ranks_skip_a_step_when_one_has_an_infinite_gradient(arrangement, position, compression, assert_equal_on_both_ranks):
    optimizer = ARRANGEMENTS[arrangement](keras.optimizers.SGD(1.0), compression=compression)
    variable = keras.Variable(np.zeros(3, "float32"))
    optimizer.build([variable])
    apply = tf.function(lambda gradient: optimizer.apply([gradient], [variable]))
    mine = np.array([1.0, 1.0, 1.0], "float32") * (1 + 2 * RANK)
    infinite = mine.copy()
    if RANK == 1:
        infinite[position] = np.inf
    for gradient in (mine, infinite, mine):
        apply(tf.constant(gradient) * optimizer.dynamic_scale)
    assert np.asarray(variable).tolist() == [-4.0] * 3  # two steps with a mean of 2
    assert int(optimizer.iterations) == 2
    assert float(optimizer.dynamic_scale) == 2.0
    assert_equal_on_both_ranks(variable, optimizer.dynamic_scale, optimizer.step_counter)


def test_what_is_exchanged_is_unscaled(compression):
    seen = []
    optimizer = LossScale(hvd.DistributedOptimizer(keras.optimizers.SGD(1.0), compression=compression), initial_scale=1024.0)
    reduce = optimizer.inner_optimizer._horovod.reduce
    optimizer.inner_optimizer._horovod.reduce = lambda gradients, variables: seen.extend(gradients) or reduce(gradients, variables)
    variable = keras.Variable([0.0])
    optimizer.build([variable])
    optimizer.apply([tf.constant([1.0 + 2.0 * RANK]) * 1024.0], [variable])
    assert [float(g[0]) for g in seen] == [1.0 + 2.0 * RANK]


def test_mixed_float16_fit_skips_together_and_trains_on_both_ranks(path, compression, assert_equal_on_both_ranks):
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2, use_bias=False, dtype="mixed_float16")], name="mixed")
    model.dtype_policy = keras.DTypePolicy("mixed_float16")
    model.set_weights([linear_model.WEIGHTS.astype("float32")])
    model.compile(path.DistributedOptimizer(keras.optimizers.SGD(0.1), compression=compression), loss="mse")
    assert isinstance(model.optimizer, LossScale)
    x, y = linear_model.data(RANK)
    if RANK == 0:
        poisoned = x.copy()
        poisoned[0, 0] = 6e4  # overflows float16 on this rank only
    else:
        poisoned = x
    model.fit(np.concatenate([x, poisoned, x]), np.concatenate([y, y, y]), batch_size=8, shuffle=False, verbose=0)
    np.testing.assert_allclose(model.get_weights()[0], linear_model.train([0, 1], 2), atol=5e-3)
    assert int(model.optimizer.iterations) == 2
    assert float(model.optimizer.dynamic_scale) == 2.0**14
    assert_equal_on_both_ranks(*model.get_weights(), *model.optimizer.variables[:4])


def test_a_built_loss_scale_optimizer_keeps_its_state():
    variable = keras.Variable([0.0])
    plain = LossScale(keras.optimizers.SGD(1.0, momentum=0.5), initial_scale=4.0)
    plain.apply([tf.constant([np.inf])], [variable])
    plain.apply([tf.constant([2.0])], [variable])
    distributed = hvd.DistributedOptimizer(plain)
    assert [float(tf.reduce_sum(v)) for v in distributed.variables] == [float(tf.reduce_sum(v)) for v in plain.variables]
    assert len(distributed.inner_optimizer.variables) == len(plain.inner_optimizer.variables)


def test_an_optimizer_that_is_not_distributed_checks_alone():
    variable = keras.Variable([0.0])
    plain = LossScale(keras.optimizers.SGD(1.0), initial_scale=4.0)
    plain.apply([tf.constant([np.inf if RANK else 4.0])], [variable])
    assert float(variable[0]) == (0.0 if RANK else -1.0)
