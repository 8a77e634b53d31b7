"""A linear model in NumPy: what two ranks must arrive at, computed without TensorFlow or Horovod."""

import numpy as np

WEIGHTS = np.array([[0.5, -0.3], [0.2, 0.1], [-0.4, 0.7]])


def data(rank):
    """Each rank has data of its own."""
    generator = np.random.default_rng(100 + rank)
    return generator.normal(size=(8, 3)).astype("float32"), generator.normal(size=(8, 2)).astype("float32")


def gradient(weights, rank):
    """Of the mean squared error over the rank's data, as Keras computes it."""
    x, y = data(rank)
    return 2 * x.T.astype("float64") @ (x @ weights - y) / y.size


def train(ranks, steps, learning_rate=0.1, momentum=0.0, combine=np.mean):
    """Weights after full-batch steps of SGD on the combined gradients."""
    weights, velocity = WEIGHTS.copy(), np.zeros_like(WEIGHTS)
    for _ in range(steps):
        velocity = momentum * velocity - learning_rate * combine([gradient(weights, rank) for rank in ranks], axis=0)
        weights += velocity
    return weights
