"""`horovod._keras.create_distributed_optimizer`, behind `DistributedOptimizer` of `horovod.keras` and `horovod.tensorflow.keras`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import horovod._keras as hvd_keras
import tensorflow as tf

from horovod_ext import keras3_optimizer, loss_scale
from horovod_ext.gradient_reducers import check_options
from horovod_ext.keras_version import is_keras3_optimizer
from horovod_ext.patches.loss_scale_optimizer import install_keras2
from horovod_ext.patches.patching import replace
from horovod_ext.signatures import arguments

_PARAMETERS = [
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


def install() -> None:
    # Both modules look this function up at each call.
    replace(hvd_keras, "create_distributed_optimizer", _PARAMETERS, _create)


def _create(stock: Callable) -> Callable:
    def create_distributed_optimizer(*args, **kwargs):
        options = arguments(stock, args, kwargs)
        check_options(options["compression"], options["op"], options["gradient_predivide_factor"])
        optimizer = options.pop("optimizer")
        if not hasattr(optimizer, "get_config"):
            raise ValueError(
                f"hvd.DistributedOptimizer expects an optimizer of Keras or tf.compat.v1. Received: {optimizer!r}. Pass an instance, "
                "such as keras.optimizers.Adam()."
            )
        if is_keras3_optimizer(optimizer):
            del options["keras"]
            distribute = functools.partial(keras3_optimizer.distribute, **options)
        else:
            install_keras2()
            distribute = functools.partial(_distribute_keras2, stock, options)
        return loss_scale.around(optimizer, distribute) if loss_scale.is_loss_scale_optimizer(optimizer) else distribute(optimizer)

    return create_distributed_optimizer


def _distribute_keras2(stock: Callable, options: dict[str, Any], optimizer: Any) -> Any:
    distributed = stock(optimizer=optimizer, **options)
    _name_plain_class(type(distributed), type(optimizer))
    return _track(distributed, options["compression"])


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
