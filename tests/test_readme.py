"""What the README shows runs as it stands there."""

import re
from pathlib import Path

import horovod.tensorflow as hvd
import keras
import numpy as np
import tensorflow as tf

import deepreduce_tf

README = (Path(__file__).parent.parent / "README.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


def block(marker):
    (found,) = (text for text in BLOCKS if marker in text)
    return found


def test_the_example_trains():
    random = np.random.default_rng(0)
    names = {"images": random.normal(size=(64, 8)).astype("float32"), "labels": random.integers(0, 10, 64)}
    exec(block("hvd.init()"), names)
    assert names["model"].optimizer.iterations == 2


def test_the_checkpoint_of_the_example_holds_the_residuals(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    hvd.init()
    (tmp_path / "checkpoint").mkdir()
    model = keras.Sequential([keras.Input([4]), keras.layers.Dense(2)])
    compression = deepreduce_tf.DeepReduce(min_size=0)
    optimizer = hvd.DistributedOptimizer(keras.optimizers.SGD(0.1), compression=compression)
    variable = tf.Variable(tf.zeros([4, 2]))
    (slot,) = compression.slots([variable], [variable.shape])
    slot.residual.assign(tf.fill([4, 2], 7.0))
    exec(block("tf.train.Checkpoint"), {"tf": tf, "hvd": hvd, "model": model, "optimizer": optimizer})
    saved = tf.train.load_checkpoint(str(tmp_path / "checkpoint" / "rank0"))
    (key,) = (name for name in saved.get_variable_to_shape_map() if "residual" in name)
    np.testing.assert_array_equal(saved.get_tensor(key), np.full((4, 2), 7.0))
