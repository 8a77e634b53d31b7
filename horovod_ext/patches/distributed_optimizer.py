"""`horovod.tensorflow.DistributedOptimizer`."""

from __future__ import annotations

from collections.abc import Callable

import horovod.tensorflow as hvd
import horovod.tensorflow.keras as hvd_tensorflow_keras
import tensorflow as tf

from horovod_ext.gradient_reducers import check_options
from horovod_ext.patches.patching import replace
from horovod_ext.signatures import arguments

_PARAMETERS = [
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
    replace(hvd, "DistributedOptimizer", _PARAMETERS, _distributed_optimizer)


def _distributed_optimizer(stock: Callable) -> Callable:
    def DistributedOptimizer(*args, **kwargs):
        options = arguments(stock, args, kwargs)
        check_options(options["compression"], options["op"], options["gradient_predivide_factor"])
        if isinstance(options["optimizer"], tf.compat.v1.train.Optimizer):
            return stock(*args, **kwargs)
        # Stock Horovod forwards all but `op` and `groups` here, so that a sum would silently become an average.
        del options["use_locking"]
        return hvd_tensorflow_keras.DistributedOptimizer(**options)

    return DistributedOptimizer
