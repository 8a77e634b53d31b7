"""Loss scaling: where the exchange stands beside it, and a check of finite gradients on which all ranks agree."""

from __future__ import annotations

import sys
import zlib
from collections.abc import Callable, Sequence
from typing import Any

import horovod.tensorflow as hvd
import keras
import tensorflow as tf

from horovod_ext import messages
from horovod_ext.keras_version import is_keras3_optimizer


def is_loss_scale_optimizer(optimizer: Any) -> bool:
    """Whether an optimizer of Keras 2 or 3 is a LossScaleOptimizer."""
    return isinstance(optimizer, (keras.optimizers.LossScaleOptimizer, *keras2_loss_scale_optimizers()))


def keras2_loss_scale_optimizers() -> tuple[type, ...]:
    """The Keras 2 classes of loss scaling: the one for legacy optimizers, then the one for new ones. None before Keras 2 is imported."""
    module = sys.modules.get("tf_keras.src.mixed_precision.loss_scale_optimizer")
    return (module.LossScaleOptimizer, module.LossScaleOptimizerV3) if module is not None else ()


def around(optimizer: Any, distribute: Callable[[Any], Any]) -> Any:
    """`LossScale(Distributed(x))` for a `LossScale(x)`.

    The other way round, the exchange would see gradients scaled by a factor that changes from step to step.

    Args:
        optimizer: a LossScaleOptimizer.
        distribute: makes the inner optimizer a distributed one.

    Returns:
        A LossScaleOptimizer of the same class and state.
    """
    inner = distribute(optimizer.inner_optimizer)
    if is_keras3_optimizer(optimizer):
        new = type(optimizer)(
            inner, initial_scale=optimizer.initial_scale, dynamic_growth_steps=optimizer.dynamic_growth_steps, name=optimizer.name
        )
        if optimizer.built:
            new.build(optimizer._trainable_variables)
            for old, fresh in zip(optimizer._variables, new._variables, strict=True):
                fresh.assign(old)
        return new
    new = type(optimizer)(
        inner, dynamic=optimizer.dynamic, initial_scale=optimizer.initial_scale, dynamic_growth_steps=optimizer.dynamic_growth_steps
    )
    if optimizer.dynamic:
        new._loss_scale.current_loss_scale.assign(optimizer.loss_scale)
        new.dynamic_counter.assign(optimizer.dynamic_counter)
    return new


def true_on_all_ranks(flag: tf.Tensor, gradients: Sequence[Any], process_set: hvd.ProcessSet) -> tf.Tensor:
    """Whether a boolean is true on every rank. The gradients give the message a name that all ranks arrive at."""
    shapes = ",".join(str(gradient.shape) for gradient in gradients)
    failures = hvd._allreduce(
        messages.unfoldable(tf.cast(tf.logical_not(flag), tf.float32)),
        name=f"HorovodAllreduce_finite_{zlib.crc32(shapes.encode()):08x}",
        op=hvd.Sum,
        ignore_name_scope=True,
        process_set=process_set,
    )
    return tf.equal(failures, 0.0)
