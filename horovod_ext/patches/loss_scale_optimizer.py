"""`LossScaleOptimizer` of Keras 3 and 2: ranks skip the same steps, and what they exchange is unscaled."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import horovod.tensorflow as hvd
import keras
import tensorflow as tf

from horovod_ext import keras3_optimizer, xla
from horovod_ext.loss_scale import keras2_loss_scale_optimizers, true_on_all_ranks
from horovod_ext.patches.patching import replace


def install() -> None:
    replace(keras.optimizers.LossScaleOptimizer, "check_finite", ["self", "grads"], _check_finite)


def install_keras2() -> None:
    """Apart from `install`, because Keras 2 is imported on first use; to be called when an optimizer of it is distributed."""
    methods = (
        ("_compute_gradients", ["self", "loss", "var_list", "grad_loss", "tape"]),
        ("compute_gradients", ["self", "loss", "var_list", "tape"]),
    )
    for cls, (method, parameters) in zip(keras2_loss_scale_optimizers(), methods, strict=False):
        replace(cls, method, parameters, _compute_gradients)


def _check_finite(stock: Callable) -> Callable:
    def check_finite(self, grads):
        finite = stock(self, grads)
        if not keras3_optimizer.is_distributed(self):
            return finite
        process_set = keras3_optimizer.process_set_of(self.inner_optimizer)
        if process_set.included() is False:
            return finite
        xla.refuse("hvd.DistributedOptimizer", stock_ops=True)
        # Keras makes the update conditional on this flag: if ranks disagreed, some would wait for ever in the exchange.
        return true_on_all_ranks(finite, [g for g in grads if g is not None], process_set)

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


@contextlib.contextmanager
def _exchange_put_off(optimizer: Any) -> Iterator[None]:
    """Makes a distributed Keras 2 optimizer leave gradients as they are. Shadows the method by an attribute of the instance."""
    object.__setattr__(optimizer, "_allreduce", lambda gradients, variables: list(gradients))
    try:
        yield
    finally:
        object.__delattr__(optimizer, "_allreduce")


def _non_finite_together(gradients: list, process_set: hvd.ProcessSet) -> list:
    """Puts a NaN into a gradient of every rank if one rank has a non-finite value, so that all skip the step."""
    present = [g for g in gradients if g is not None]
    if process_set.included() is False or not present:
        return gradients
    finite = [tf.reduce_all(tf.math.is_finite(g.values if isinstance(g, tf.IndexedSlices) else g)) for g in present]
    poison = tf.where(true_on_all_ranks(tf.reduce_all(finite), present, process_set), 0.0, float("nan"))
    return [None if g is None else _plus(g, poison) for g in gradients]


def _plus(gradient: Any, number: tf.Tensor) -> Any:
    if isinstance(gradient, tf.IndexedSlices):
        return tf.IndexedSlices(_plus(gradient.values, number), gradient.indices, gradient.dense_shape)
    return gradient + tf.cast(number, gradient.dtype)
