"""`horovod._keras.load_model`, which `horovod.keras` and `horovod.tensorflow.keras` call."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import horovod._keras as hvd_keras

from horovod_ext.keras_version import is_keras3_module
from horovod_ext.patches.patching import replace


def install() -> None:
    parameters = ["keras", "wrap_optimizer", "filepath", "custom_optimizers", "custom_objects", "legacy_opts"]
    replace(hvd_keras, "load_model", parameters, _load_model)


def _load_model(stock: Callable) -> Callable:
    def load_model(keras, wrap_optimizer, filepath, custom_optimizers, custom_objects, legacy_opts=False):
        if not is_keras3_module(keras):
            return stock(keras, wrap_optimizer, filepath, custom_optimizers, custom_objects, legacy_opts)
        objects = {cls.__name__: cls for cls in custom_optimizers or ()} | dict(custom_objects or {})
        model = keras.models.load_model(filepath, custom_objects=objects)
        if model.optimizer is None:
            warnings.warn(f"{filepath} holds no optimizer: compile the model with hvd.DistributedOptimizer to train it.", stacklevel=3)
            return model
        # Keras 3 files name a class of keras.optimizers, which no custom object can stand in for: distribute what was loaded.
        model.optimizer = wrap_optimizer(lambda: model.optimizer)()
        model.jit_compile = False  # resolved while the optimizer was still a plain one
        return model

    return load_model
