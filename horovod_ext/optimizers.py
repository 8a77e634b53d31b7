"""Ways in: `DistributedOptimizer` of `horovod.tensorflow`, `horovod.keras` and `horovod.tensorflow.keras`, and their `load_model`."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import horovod._keras as hvd_keras
import horovod.tensorflow as hvd
import tensorflow as tf

from horovod_ext import keras3, loss_scale, seams
from horovod_ext.gather_compressor import check_op, gathers
from horovod_ext.keras_version import is_keras3_optimizer
from horovod_ext.keras_version import keras3 as keras3_module

_KERAS = [
    "keras",
    "optimizer",
    "name",
    "device_dense",
    "device_sparse",
    "compression",
    "sparse_as_dense",
    "gradient_predivide_factor",
    "op",
    "backward_passes_per_step",
    "average_aggregated_gradients",
    "groups",
    "process_set",
    "scale_local_gradients",
]
_TENSORFLOW = [
    "optimizer",
    "name",
    "use_locking",
    "device_dense",
    "device_sparse",
    "compression",
    "sparse_as_dense",
    "backward_passes_per_step",
    "op",
    "gradient_predivide_factor",
    "average_aggregated_gradients",
    "num_groups",
    "groups",
    "process_set",
    "scale_local_gradients",
]


def install() -> None:
    # horovod.keras and horovod.tensorflow.keras look this function up at each call; they need no replacement of their own.
    seams.replace(hvd_keras, "create_distributed_optimizer", _KERAS, _create)
    seams.replace(hvd, "DistributedOptimizer", _TENSORFLOW, _distributed_optimizer)
    loading = ["keras", "wrap_optimizer", "filepath", "custom_optimizers", "custom_objects", "legacy_opts"]
    seams.replace(hvd_keras, "load_model", loading, _load_model)


def _create(stock: Callable) -> Callable:
    def create_distributed_optimizer(*args, **kwargs):
        options = seams.arguments(stock, args, kwargs)
        if gathers(options["compression"]):
            check_op(options["op"])
        _check_predivide(options["gradient_predivide_factor"], options["op"])
        optimizer = options["optimizer"]
        if not hasattr(optimizer, "get_config"):
            raise ValueError(
                f"hvd.DistributedOptimizer expects an optimizer of Keras or tf.compat.v1. Received: {optimizer!r}. Pass an instance, "
                "such as keras.optimizers.Adam()."
            )
        if is_keras3_optimizer(optimizer):
            del options["keras"]

            def distribute(inner: Any) -> Any:
                return keras3.distribute(**{**options, "optimizer": inner})
        else:
            loss_scale.install_keras2()

            def distribute(inner: Any) -> Any:
                distributed = stock(**{**options, "optimizer": inner})
                _name_plain_class(type(distributed), type(inner))
                return _track(distributed, options["compression"])

        if loss_scale.is_loss_scale_optimizer(optimizer):
            return loss_scale.around(optimizer, distribute)
        return distribute(optimizer)

    return create_distributed_optimizer


def _distributed_optimizer(stock: Callable) -> Callable:
    def DistributedOptimizer(*args, **kwargs):
        options = seams.arguments(stock, args, kwargs)
        if gathers(options["compression"]):
            check_op(options["op"])
        _check_predivide(options["gradient_predivide_factor"], options["op"])
        if isinstance(options["optimizer"], tf.compat.v1.train.Optimizer):
            return stock(*args, **kwargs)
        # Stock Horovod forwards all but `op` and `groups` here, so that a sum would silently become an average.
        import horovod.tensorflow.keras as hvd_tensorflow_keras

        del options["use_locking"]
        return hvd_tensorflow_keras.DistributedOptimizer(**options)

    return DistributedOptimizer


def _check_predivide(factor: float, op: object) -> None:
    if factor != 1.0 and op != hvd.Average:
        raise ValueError(
            f"gradient_predivide_factor splits an average into two divisions; it needs op=hvd.Average. Received: "
            f"gradient_predivide_factor={factor} with another op. Leave it at 1.0."
        )


def _name_plain_class(distributed: type, base: type) -> None:
    """Makes files name the plain Keras 2 class. Stock Horovod leaves its own module in `.keras` files, which then do not load."""
    exported = getattr(tf.keras.optimizers, base.__name__, None) is base
    distributed.__module__ = "keras.optimizers" if exported else base.__module__


def _track(optimizer: Any, compression: Any) -> Any:
    """Lets checkpoints of a Keras 2 optimizer hold the compressor's variables."""
    if isinstance(compression, tf.__internal__.tracking.Trackable):
        if isinstance(optimizer, tf.__internal__.tracking.AutoTrackable):
            optimizer.error_feedback = compression
        else:
            optimizer._track_trackable(compression, "error_feedback")
    return optimizer


def _load_model(stock: Callable) -> Callable:
    def load_model(keras, wrap_optimizer, filepath, custom_optimizers, custom_objects, legacy_opts=False):
        if not _is_keras3_module(keras):
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


def _is_keras3_module(keras: Any) -> bool:
    """Whether the module that Horovod calls Keras is Keras 3: `tensorflow.keras` is a lazily loaded module of its own."""
    installed = keras3_module()
    return installed is not None and issubclass(keras.Model, installed.Model)
