"""Methods of Horovod's Keras callbacks, for models of Keras 3 and of Keras 2.

`horovod.keras.callbacks` and `horovod.tensorflow.keras.callbacks` derive from the implementations in `horovod._keras.callbacks`, so these
are what is replaced. They reach variables through a Keras backend module that Keras 3 does not have; in eager execution the objects
themselves will do.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import horovod.keras.callbacks as hvd_keras_callbacks
import horovod.tensorflow as hvd
import horovod.tensorflow.keras.callbacks as hvd_tensorflow_keras_callbacks
import tensorflow as tf
from horovod._keras import callbacks as implementations

from horovod_ext.keras_version import is_keras3_model, tensorflow_variable
from horovod_ext.patches.patching import replace


def install() -> None:
    broadcast = implementations.BroadcastGlobalVariablesCallbackImpl
    replace(broadcast, "register_local_var", ["self", "var"], _register_local_var)
    replace(broadcast, "on_batch_end", ["self", "batch", "logs"], _broadcast_on_batch_end)
    for public in (hvd_keras_callbacks, hvd_tensorflow_keras_callbacks):
        parameters = ["self", "root_rank", "device", "local_variables"]
        replace(public.BroadcastGlobalVariablesCallback, "__init__", parameters, _tensorflow_local_variables)
    replace(implementations.MetricAverageCallbackImpl, "_average_metrics_in_place", ["self", "logs"], _average_metrics)
    schedule = implementations.LearningRateScheduleCallbackImpl
    replace(schedule, "_adjust_learning_rate", ["self", "epoch"], _adjust_learning_rate)
    replace(schedule, "on_epoch_end", ["self", "epoch", "logs"], _log_learning_rate)
    warmup = implementations.LearningRateWarmupCallbackImpl
    replace(warmup, "on_epoch_end", ["self", "epoch", "logs"], _report_end_of_warmup)


def _tensorflow_local_variables(stock: Callable) -> Callable:
    def __init__(self, root_rank, device="", local_variables=None):
        if isinstance(local_variables, list | tuple | set):
            local_variables = [tensorflow_variable(v) for v in local_variables]
        elif local_variables is not None:
            local_variables = tensorflow_variable(local_variables)
        stock(self, root_rank, device, local_variables)

    return __init__


def _register_local_var(stock: Callable) -> Callable:
    def register_local_var(self, var):
        stock(self, tensorflow_variable(var))

    return register_local_var


def _broadcast_on_batch_end(stock: Callable) -> Callable:
    def on_batch_end(self, batch, logs=None):
        if not is_keras3_model(self.model):
            return stock(self, batch, logs)
        if self.broadcast_done:
            return
        # Weights, not variables: the states of metrics and of dropout's random generators are each rank's own.
        variables = [*self.model.weights, *_optimizer_state(self.model.optimizer)]
        variables = [v for v in map(tensorflow_variable, variables) if v.ref() not in self._local_vars]
        with tf.device(self.device):
            hvd.broadcast_variables(variables, root_rank=self.root_rank)
        self.broadcast_done = True

    return on_batch_end


def _optimizer_state(optimizer: Any) -> list:
    """All but what is being accumulated, which is the sum of each rank's own gradients so far."""
    inner = getattr(optimizer, "inner_optimizer", optimizer)
    accumulators = {id(v) for v in getattr(inner, "_accumulated_gradients", ())}
    return [v for v in optimizer.variables if id(v) not in accumulators]


def _average_metrics(stock: Callable) -> Callable:
    def _average_metrics_in_place(self, logs):
        if not tf.executing_eagerly():
            return stock(self, logs)
        if not logs:
            return
        names = sorted(logs)  # every rank's dictionary in the same order
        local = tf.constant([float(logs[name]) for name in names], tf.float64)
        with tf.device(self.device):
            mean = hvd.allreduce(local, op=hvd.Average)
        logs.update(zip(names, mean.numpy().tolist(), strict=True))

    return _average_metrics_in_place


def _adjust_learning_rate(stock: Callable) -> Callable:
    def _adjust_learning_rate(self, epoch):
        if not tf.executing_eagerly():
            return stock(self, epoch)
        optimizer = _updating(self.model.optimizer)
        before = _learning_rate(optimizer)
        after = self.initial_lr * self.multiplier(epoch)
        optimizer.learning_rate = after
        if self.momentum_correction and before:
            # The velocity contains the old learning rate. Stock Horovod makes up for it by the momentum coefficient, for one batch; that
            # is a constant of the compiled step, and scaling the velocity itself comes to the same.
            for velocity in _velocities(optimizer):
                velocity.assign(velocity * (after / before))

    return _adjust_learning_rate


def _log_learning_rate(stock: Callable) -> Callable:
    def on_epoch_end(self, epoch, logs=None):
        if not tf.executing_eagerly():
            return stock(self, epoch, logs)
        if logs is not None:
            logs["lr"] = _learning_rate(self.model.optimizer)

    return on_epoch_end


def _report_end_of_warmup(stock: Callable) -> Callable:
    def on_epoch_end(self, epoch, logs=None):
        if not tf.executing_eagerly():
            return stock(self, epoch, logs)
        implementations.LearningRateScheduleCallbackImpl.on_epoch_end(self, epoch, logs)
        if self.verbose and epoch == self.end_epoch - 1 and hvd.rank() == 0:
            print(f"\nEpoch {epoch + 1}: the learning rate is warmed up to {_learning_rate(self.model.optimizer):g}.")

    return on_epoch_end


def _updating(optimizer: Any) -> Any:
    """The optimizer that holds the velocities: the one inside, for a LossScaleOptimizer."""
    return getattr(optimizer, "inner_optimizer", optimizer)


def _learning_rate(optimizer: Any) -> float:
    return float(tf.convert_to_tensor(tensorflow_variable(optimizer.learning_rate)))


def _velocities(optimizer: Any) -> list:
    """The velocity of each variable, for optimizers that have a momentum and keep one. Legacy optimizers keep them as slots."""
    if hasattr(optimizer, "get_slot_names"):
        return [v for v in optimizer.variables() if v.name.endswith("/momentum:0")]
    if not getattr(optimizer, "momentum", None):
        return []
    kept = getattr(optimizer, "momentums", None) or getattr(optimizer, "_momentums", None) or ()
    return [v for v in kept if v is not None]
