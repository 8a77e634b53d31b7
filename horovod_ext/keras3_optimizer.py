"""Keras 3 optimizers that exchange their gradients before each update."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

import horovod.tensorflow as hvd
import keras
import tensorflow as tf

from horovod_ext import indexed_slices, xla
from horovod_ext.gather_compressor import gathers
from horovod_ext.gradient_reducers import DenseReducer, GatheringReducer
from horovod_ext.keras_version import tensorflow_variable
from horovod_ext.signatures import require


@dataclasses.dataclass(eq=False)
class _Reduction:
    """What a distributed optimizer knows beside its Keras configuration. A plain object, so that Keras neither saves nor tracks it.

    Attributes:
        name: names the ops.
        reduce: reduces a list of gradients of a list of `tf.Variable`s.
        process_set: the ranks that take part.
        gradient_scale: multiplied into the gradients before the exchange.
        scale_local_gradients: whether gradients of local variables are divided by the number of ranks.
        local: references of variables whose gradients stay on their rank.
        reached: whether the present call of `apply` came by the exchange.
    """

    name: str
    reduce: Callable[[list, list], list]
    process_set: hvd.ProcessSet
    gradient_scale: float
    scale_local_gradients: bool
    local: set = dataclasses.field(default_factory=set)
    reached: bool = False

    def __call__(self, gradients: Sequence[Any], variables: Sequence[tf.Variable]) -> list:
        xla.refuse(self.name, stock_ops=True)
        self.reached = True
        results = [indexed_slices.scale(gradient, self.gradient_scale) for gradient in gradients]
        local = [i for i, variable in enumerate(variables) if variable.ref() in self.local]
        shared = [i for i in range(len(variables)) if i not in local]
        if shared:
            reduced = self.reduce([results[i] for i in shared], [variables[i] for i in shared])
            for i, gradient in zip(shared, reduced, strict=True):
                results[i] = gradient
        if local:
            share = 1.0 / tf.cast(hvd.size_op(self.process_set.process_set_id), tf.float32) if self.scale_local_gradients else 1.0
            for i in local:
                results[i] = indexed_slices.scale(indexed_slices.merged(results[i]), share)
        return results


class _Distributed:
    """Goes before a Keras 3 optimizer class in the bases of a distributed one.

    The exchange sits where Keras has filtered, unscaled and accumulated the gradients, right before it updates the variables.
    """

    _horovod: _Reduction

    def build(self, variables):
        if not self.built:  # a LossScaleOptimizer builds its inner optimizer, which may bring its state along
            super().build(variables)

    def register_local_var(self, var: Any) -> None:
        """Keeps the gradients of a variable on their rank."""
        self._horovod.local.add(tensorflow_variable(var).ref())

    def apply(self, grads, trainable_variables=None):
        self._horovod.reached = False
        super().apply(grads, trainable_variables)
        # Steps that only accumulate do not exchange; in a graph both branches are traced, so there it must have been reached.
        accumulates = bool(self.gradient_accumulation_steps) and tf.executing_eagerly()
        if len(grads) and not accumulates and not self._horovod.reached:
            raise ValueError(
                f"hvd.DistributedOptimizer exchanges gradients in `_backend_update_step`, which `apply` of every Keras optimizer calls. "
                f"Received: {type(self).__name__}, whose `apply` does not. Let its methods call those of keras.optimizers.Optimizer."
            )

    def _clip_gradients(self, grads):
        return grads  # what is clipped is the reduced gradient, below

    def _backend_update_step(self, grads, trainable_variables, learning_rate):
        grads = self._horovod(grads, [tensorflow_variable(variable) for variable in trainable_variables])
        super()._backend_update_step(super()._clip_gradients(grads), trainable_variables, learning_rate)


def is_distributed(optimizer: Any) -> bool:
    """Whether a Keras 3 optimizer, or the one inside a LossScaleOptimizer, exchanges its gradients."""
    return isinstance(getattr(optimizer, "inner_optimizer", optimizer), _Distributed)


def process_set_of(optimizer: Any) -> hvd.ProcessSet:
    """The process set of a distributed optimizer."""
    return optimizer._horovod.process_set


def distribute(
    optimizer: Any,
    *,
    name: str | None,
    device_dense: str,
    device_sparse: str,
    compression: Any,
    sparse_as_dense: bool,
    gradient_predivide_factor: float,
    op: object,
    backward_passes_per_step: int,
    average_aggregated_gradients: bool,
    groups: Any,
    process_set: hvd.ProcessSet,
    scale_local_gradients: bool,
) -> Any:
    """A copy of a Keras 3 optimizer, with its state, that exchanges its gradients. Arguments as for `hvd.DistributedOptimizer`.

    Clipping applies to the reduced gradients. `backward_passes_per_step` becomes Keras's `gradient_accumulation_steps`. The copy is saved
    as an optimizer of its original class, and loads as one without Horovod.
    """
    accumulate = _accumulation_steps(optimizer, backward_passes_per_step)
    if isinstance(optimizer, _Distributed):
        raise ValueError("hvd.DistributedOptimizer expects an optimizer that is not distributed yet. Received one that is. Wrap it once.")
    name = name or f"Distributed{type(optimizer).__name__}"
    reducer: Callable[[list, list], list]
    if gathers(compression):
        reducer = GatheringReducer(name, compression, sparse_as_dense, op, gradient_predivide_factor, process_set)
    else:
        devices = (device_dense, device_sparse)
        reducer = DenseReducer(name, *devices, compression, sparse_as_dense, op, gradient_predivide_factor, groups, process_set)
    config = optimizer.get_config()
    if accumulate != optimizer.gradient_accumulation_steps:
        config["gradient_accumulation_steps"] = accumulate
    if not isinstance(optimizer._learning_rate, keras.Variable):
        # A schedule or callable is handed over as it is: one of an unregistered class could not be made again from a configuration.
        config["learning_rate"] = optimizer._learning_rate
    base: Any = type(optimizer)
    distributed = _distributed_class(base).from_config(config)
    distributed._horovod = _Reduction(
        name=name,
        reduce=reducer,
        process_set=process_set,
        # Keras averages what it accumulates, Horovod sums it unless told otherwise.
        gradient_scale=float(backward_passes_per_step) if backward_passes_per_step > 1 and not average_aggregated_gradients else 1.0,
        scale_local_gradients=scale_local_gradients,
    )
    _copy_state(optimizer, distributed)
    if isinstance(compression, tf.__internal__.tracking.Trackable):
        distributed.error_feedback = compression  # so that tf.train.Checkpoint finds its variables
    return distributed


@functools.cache
def _distributed_class(base: Any) -> Any:
    backend = keras.backend.backend()
    if backend != "tensorflow":
        raise ValueError(
            f"hvd.DistributedOptimizer expects Keras on TensorFlow. Received: backend {backend!r}. Set KERAS_BACKEND=tensorflow."
        )
    try:
        require(base, "apply", ["self", "grads", "trainable_variables"])
        require(base, "_clip_gradients", ["self", "grads"])
        require(base, "_backend_update_step", ["self", "grads", "trainable_variables", "learning_rate"])
    except ImportError as error:
        raise ValueError(f"hvd.DistributedOptimizer cannot make {base.__name__} exchange its gradients. {error}") from error
    # Saved files name the class by module and name: they must say those of the plain class.
    exported = getattr(keras.optimizers, base.__name__, None) is base
    namespace = {
        "__module__": "keras.optimizers" if exported else base.__module__,
        "__qualname__": base.__qualname__,
        "__doc__": base.__doc__,
    }
    distributed = type(base.__name__, (_Distributed, base), namespace)
    registered = keras.saving.get_registered_name(base)
    if registered != base.__name__:
        package, registered_name = registered.split(">", 1)
        keras.saving.register_keras_serializable(package, registered_name)(distributed)
        keras.saving.get_custom_objects()[registered] = base  # the name stands for the plain class when a file is loaded
    return distributed


def _accumulation_steps(optimizer: Any, backward_passes_per_step: int) -> int | None:
    own = optimizer.gradient_accumulation_steps
    if backward_passes_per_step == 1:
        return own
    if backward_passes_per_step < 1 or own not in (None, 1, backward_passes_per_step):
        raise ValueError(
            f"backward_passes_per_step must be at least 1 and agree with the optimizer's gradient_accumulation_steps={own}. "
            f"Received: backward_passes_per_step={backward_passes_per_step}. Set only one of the two."
        )
    return backward_passes_per_step


def _copy_state(source: Any, target: Any) -> None:
    for attribute in ("_exclude_from_weight_decay", "_exclude_from_weight_decay_pattern"):  # set by a method, so not in the configuration
        if hasattr(source, attribute):
            setattr(target, attribute, getattr(source, attribute))
    if not source.built:
        return
    target.build(source._trainable_variables)
    accumulators = {id(v) for o in (source, target) for v in getattr(o, "_accumulated_gradients", ())}
    kept_source, kept_target = ([v for v in o.variables if id(v) not in accumulators] for o in (source, target))
    for old, new in zip(kept_source, kept_target, strict=True):
        new.assign(old)
    # Keras counts micro-batches; the schedule goes by updates.
    target._iterations.assign(source.iterations * (target.gradient_accumulation_steps or 1))
