"""Training over two ranks with DeepReduce, against NumPy."""

import horovod.tensorflow as hvd
import horovod.tensorflow.keras as hvd_keras
import keras
import linear_model
import numpy as np
import pytest
import tensorflow as tf

from deepreduce_tf import (
    QSGD,
    BFloat16,
    Bitmap,
    DeepReduce,
    Deflate,
    FixedWidth,
    Float16,
    LogQuantizer,
    Nonzero,
    RandomK,
    Rice,
    Threshold,
    TopK,
)

RANK = hvd.rank()
STEPS = 5
LOSSLESS = [
    {"sparsifier": TopK(1.0), "index": Rice(), "value": "float32"},
    {"sparsifier": TopK(1.0), "index": Bitmap(), "value": Deflate()},
    {"sparsifier": RandomK(1.0), "value": "float32"},
    {"sparsifier": Nonzero(), "index": FixedWidth(), "value": Deflate(shuffle=False)},
    {"sparsifier": Threshold(1e-30), "index": Rice(), "value": "float32"},
]


def train_by_tape(compression, steps=STEPS, in_function=True):
    weights = tf.Variable(linear_model.WEIGHTS.astype("float32"))
    x, y = linear_model.data(RANK)

    def step():
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((x @ weights - y) ** 2)
        (gradient,) = hvd.DistributedGradientTape(tape, compression=compression).gradient(loss, [weights])
        weights.assign_sub(0.1 * gradient)

    step = tf.function(step) if in_function else step
    for _ in range(steps):
        step()
    return weights.numpy()


def train_by_fit(compression, steps=STEPS, momentum=0.0):
    model = keras.Sequential([keras.layers.Input((3,)), keras.layers.Dense(2, use_bias=False)])
    model.set_weights([linear_model.WEIGHTS])
    optimizer = hvd_keras.DistributedOptimizer(keras.optimizers.SGD(0.1, momentum=momentum), compression=compression)
    model.compile(optimizer, loss="mse")
    x, y = linear_model.data(RANK)
    model.fit(x, y, batch_size=len(x), epochs=steps, shuffle=False, verbose=0)
    return model.get_weights()[0]


@pytest.mark.parametrize("stages", LOSSLESS, ids=repr)
@pytest.mark.parametrize("in_function", [False, True], ids=["eager", "function"])
def test_a_lossless_configuration_trains_as_numpy_does_on_the_data_of_both_ranks(stages, in_function, assert_equal_on_both_ranks):
    weights = train_by_tape(DeepReduce(min_size=0, **stages), in_function=in_function)
    assert_equal_on_both_ranks(weights)
    np.testing.assert_allclose(weights, linear_model.train([0, 1], STEPS), atol=1e-6)
    assert np.abs(weights - linear_model.train([RANK], STEPS)).max() > 0.01


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_fit_with_a_lossless_configuration_trains_as_numpy_does(momentum, assert_equal_on_both_ranks):
    weights = train_by_fit(DeepReduce(TopK(1.0), value="float32", min_size=0), momentum=momentum)
    assert_equal_on_both_ranks(weights)
    np.testing.assert_allclose(weights, linear_model.train([0, 1], STEPS, momentum=momentum), atol=1e-6)
    assert np.abs(weights - linear_model.train([RANK], STEPS, momentum=momentum)).max() > 0.01


def test_gradients_below_min_size_train_as_numpy_does(assert_equal_on_both_ranks):
    compression = DeepReduce(TopK(1e-6))
    weights = train_by_tape(compression)
    assert_equal_on_both_ranks(weights)
    np.testing.assert_allclose(weights, linear_model.train([0, 1], STEPS), atol=1e-6)
    assert compression.stats()["payload_bytes"] == 0
    assert compression.stats()["small_bytes"] == STEPS * weights.nbytes


@pytest.mark.parametrize("value", [Float16(), BFloat16(), QSGD(8), QSGD(4), QSGD(4, "l2"), LogQuantizer(8), LogQuantizer(4)], ids=repr)
@pytest.mark.parametrize("sparsifier", [TopK(0.34), RandomK(0.34)], ids=repr)
def test_lossy_configurations_converge_to_what_dense_training_finds(sparsifier, value, assert_equal_on_both_ranks):
    weights = train_by_tape(DeepReduce(sparsifier, value=value, min_size=0), steps=200)
    assert_equal_on_both_ranks(weights)
    np.testing.assert_allclose(weights, linear_model.train([0, 1], 200), atol=0.05)
