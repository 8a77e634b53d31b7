"""Loss scaling: ranks skip the same steps, and what they exchange is unscaled."""

from __future__ import annotations

import contextlib
import sys
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import horovod.tensorflow as hvd
import tensorflow as tf

from horovod_ext import dense, keras3, seams, xla
from horovod_ext.keras_version import is_keras3_optimizer
from horovod_ext.keras_version import keras3 as keras3_module


def install() -> None:
    keras = keras3_module()
    if keras is not None:
        seams.replace(keras.optimizers.LossScaleOptimizer, "check_finite", ["self", "grads"], _check_finite)


def install_keras2() -> None:
    """Apart from `install`, because Keras 2 is imported on first use; to be called when an optimizer of it is distributed."""
    for cls, method, parameters in _keras2_classes():
        seams.replace(cls, method, parameters, _compute_gradients)


def is_loss_scale_optimizer(optimizer: Any) -> bool:
    """Whether an optimizer of Keras 2 or 3 is a LossScaleOptimizer."""
    if is_keras3_optimizer(optimizer):
        return isinstance(optimizer, keras3_module().optimizers.LossScaleOptimizer)
    return isinstance(optimizer, tuple(cls for cls, *_ in _keras2_classes()))


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


def _check_finite(stock: Callable) -> Callable:
    def check_finite(self, grads):
        finite = stock(self, grads)
        if not keras3.is_distributed(self):
            return finite
        process_set = keras3.process_set(self.inner_optimizer)
        if process_set.included() is False:
            return finite
        xla.refuse("hvd.DistributedOptimizer", gathers=False)
        # Keras makes the update conditional on this flag: if ranks disagreed, some would wait for ever in the exchange.
        return _on_all_ranks(finite, [g for g in grads if g is not None], process_set)

    return check_finite


def _compute_gradients(stock: Callable) -> Callable:
    """For both Keras 2 classes, which let the inner optimizer compute (and so exchange) scaled gradients, and unscale them after."""

    def compute_gradients(self, *args, **kwargs):
        inner = self.inner_optimizer
        if not hasattr(inner, "_allreduce_grads"):
            return stock(self, *args, **kwargs)
        with _exchange_put_off(inner):
            grads_and_vars = stock(self, *args, **kwargs)
        gradients, variables = zip(*grads_and_vars, strict=True)
        gradients = inner._allreduce(gradients, variables)
        if inner._agg_helper or inner._local_vars:  # else every rank has the same gradients by now
            gradients = _non_finite_together(gradients, inner.process_set)
        return list(zip(gradients, variables, strict=True))

    return compute_gradients


def _non_finite_together(gradients: list, process_set: hvd.ProcessSet) -> list:
    """Puts a NaN into a gradient of every rank if one rank has a non-finite value, so that all skip the step."""
    present = [g for g in gradients if g is not None]
    if process_set.included() is False or not present:
        return gradients
    finite = [tf.reduce_all(tf.math.is_finite(g.values if isinstance(g, tf.IndexedSlices) else g)) for g in present]
    poison = tf.where(_on_all_ranks(tf.reduce_all(finite), present, process_set), 0.0, float("nan"))
    return [None if g is None else _plus(g, poison) for g in gradients]


def _plus(gradient: Any, number: tf.Tensor) -> Any:
    if isinstance(gradient, tf.IndexedSlices):
        return tf.IndexedSlices(_plus(gradient.values, number), gradient.indices, gradient.dense_shape)
    return gradient + tf.cast(number, gradient.dtype)


def _on_all_ranks(flag: tf.Tensor, gradients: list, process_set: hvd.ProcessSet) -> tf.Tensor:
    """Whether a boolean is true on every rank. The gradients give the message a name that all ranks arrive at."""
    shapes = ",".join(str(gradient.shape) for gradient in gradients)
    failures = hvd._allreduce(
        dense.unfoldable(tf.cast(tf.logical_not(flag), tf.float32)),
        name=f"HorovodAllreduce_finite_{zlib.crc32(shapes.encode()):08x}",
        op=hvd.Sum,
        ignore_name_scope=True,
        process_set=process_set,
    )
    return tf.equal(failures, 0.0)


@contextlib.contextmanager
def _exchange_put_off(optimizer: Any) -> Iterator[None]:
    """Makes a distributed Keras 2 optimizer leave gradients as they are. Shadows the method by an attribute of the instance."""
    object.__setattr__(optimizer, "_allreduce", lambda gradients, variables: list(gradients))
    try:
        yield
    finally:
        object.__delattr__(optimizer, "_allreduce")


def _keras2_classes() -> Iterator[tuple[type, str, list[str]]]:
    """The two Keras 2 classes of loss scaling, with the method of each that computes gradients and its parameters."""
    for package in ("tf_keras", "keras"):
        module = sys.modules.get(f"{package}.src.mixed_precision.loss_scale_optimizer")
        if module is not None and hasattr(module, "LossScaleOptimizerV3"):
            yield module.LossScaleOptimizer, "_compute_gradients", ["self", "loss", "var_list", "grad_loss", "tape"]
            yield module.LossScaleOptimizerV3, "compute_gradients", ["self", "loss", "var_list", "tape"]
