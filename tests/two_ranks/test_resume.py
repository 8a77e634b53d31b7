"""A training that stops after 5 of 10 steps and goes on with new objects ends with the bits of one that never stopped."""

import horovod.tensorflow as hvd
import horovod.tensorflow.keras as hvd_keras
import keras
import numpy as np
import pytest
import tensorflow as tf

from deepreduce_tf import DeepReduce, RandomK, TopK
from deepreduce_tf.presets import PRESETS

RANK = hvd.rank()
STEPS, BATCH = 10, 16

CONFIGURATIONS = {
    "default": {},
    "warm-up": {"sparsifier": TopK(0.01, warmup_steps=8), "value": "log_quantizer"},
    "random indices": {"sparsifier": RandomK(0.1), "seed": 7},
    **{name: PRESETS[name] for name in ("bf-p1", "qsgd-bf-p2", "fit-poly", "skcompress", "3lc")},
}


class Job:
    """A model, its optimizer and the checkpoint that the README shows."""

    def __init__(self, configuration):
        keras.utils.set_random_seed(0)
        self.model = keras.Sequential([keras.Input([12]), keras.layers.Dense(40, activation="relu"), keras.layers.Dense(3)])
        self.compression = DeepReduce(min_size=100, **configuration)
        self.optimizer = hvd_keras.DistributedOptimizer(keras.optimizers.Adam(0.01), compression=self.compression)
        self.optimizer.build(self.model.trainable_variables)
        self.model.compile(self.optimizer, loss="mse")
        self.checkpoint = tf.train.Checkpoint(model=self.model, optimizer=self.optimizer)

    def train(self, first, last):
        draw = np.random.default_rng(RANK)
        x, y = draw.normal(size=(STEPS * BATCH, 12)), draw.normal(size=(STEPS * BATCH, 3))
        rows = slice(first * BATCH, last * BATCH)
        self.model.fit(x[rows], y[rows], batch_size=BATCH, shuffle=False, verbose=0)
        return self

    def state(self, path):
        """All variables of the checkpoint by name, but for what was measured."""
        saved = tf.train.load_checkpoint(self.checkpoint.write(str(path)))
        names = (name for name in saved.get_variable_to_shape_map() if name.endswith("VARIABLE_VALUE") and "_totals" not in name)
        return {name: saved.get_tensor(name) for name in names}


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_a_resumed_training_ends_with_the_bits_of_an_uninterrupted_one(name, tmp_path, assert_equal_on_both_ranks):
    configuration = CONFIGURATIONS[name]
    straight = Job(configuration).train(0, STEPS // 2)
    path = straight.checkpoint.write(str(tmp_path / f"half{RANK}"))
    straight.train(STEPS // 2, STEPS)
    resumed = Job(configuration)
    status = resumed.checkpoint.read(path)
    resumed.train(STEPS // 2, STEPS)
    status.assert_consumed()

    expected, received = straight.state(tmp_path / f"straight{RANK}"), resumed.state(tmp_path / f"resumed{RANK}")
    assert expected.keys() == received.keys()
    for kind in ("_trainable_variables/", "optimizer/_variables/", "_iterations/", "/residual_", "/step_"):
        assert any(kind in key for key in expected), f"no {kind} among {sorted(expected)}"
    for key, value in expected.items():
        assert value.tobytes() == received[key].tobytes(), f"{key} differs"
    assert_equal_on_both_ranks(*resumed.model.get_weights())
    residuals = [value for key, value in received.items() if "/residual_" in key]
    assert residuals and any(np.any(value) for value in residuals)
