"""Methods of `horovod.tensorflow._DistributedGradientTape`, for Keras 3 variables and any nest of sources."""

from __future__ import annotations

from collections.abc import Callable

import horovod.tensorflow as hvd
import tensorflow as tf

from horovod_ext import indexed_slices, xla
from horovod_ext.gradient_reducers import GatheringReducer
from horovod_ext.keras_version import is_keras3_variable, tensorflow_variable
from horovod_ext.patches.patching import replace


def install() -> None:
    # Each call of hvd.DistributedGradientTape copies this class's dictionary, so replacing its methods reaches every later tape.
    template = hvd._DistributedGradientTape
    gradient = ["self", "target", "sources", "output_gradients", "use_generic_names"]
    replace(template, "gradient", gradient, _gradient)
    replace(template, "register_local_source", ["self", "source"], _register_local_source)
    replace(template, "get_local_and_global_gradients", gradient, _get_local_and_global_gradients)


def _gradient(stock: Callable) -> Callable:
    def gradient(self, target, sources, output_gradients=None, use_generic_names=False):
        xla.refuse("hvd.DistributedGradientTape", stock_ops=True)
        flat = tf.nest.flatten(sources)
        reduces_to_merged = isinstance(self._allreduce_grads, GatheringReducer)
        gradients = stock(self, target, [tensorflow_variable(s) for s in flat], output_gradients, use_generic_names)
        for i, source in enumerate(flat):
            if is_keras3_variable(source) and not (reduces_to_merged and source.value.ref() not in self._local_sources):
                gradients[i] = indexed_slices.merged(gradients[i])
        return tf.nest.pack_sequence_as(sources, gradients)

    return gradient


def _register_local_source(stock: Callable) -> Callable:
    def register_local_source(self, source):
        stock(self, tensorflow_variable(source))

    return register_local_source


def _get_local_and_global_gradients(stock: Callable) -> Callable:
    def get_local_and_global_gradients(self, target, sources, output_gradients=None, use_generic_names=False):
        # Not by way of stock, which would hide from `gradient` which sources are Keras 3 variables.
        gradients = self.gradient(target, sources, output_gradients, use_generic_names)
        local, shared = [], []
        for source, gradient in zip(sources, gradients, strict=True):
            is_local = tensorflow_variable(source).ref() in self._local_sources
            (local if is_local else shared).append((source, gradient))
        return local, shared

    return get_local_and_global_gradients
