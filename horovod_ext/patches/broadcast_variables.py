"""`horovod.tensorflow.broadcast_variables`, for Keras 3 variables.

Stock Horovod names a message after the variable, and Keras numbers its variables by what the process has built: a rank that built one model
more than the others would wait for them for ever. Here messages are named by position.
"""

from __future__ import annotations

from collections.abc import Callable

import horovod.tensorflow as hvd
import tensorflow as tf
from horovod.tensorflow import elastic, functions

from horovod_ext.keras_version import tensorflow_variable
from horovod_ext.messages import exchange_name
from horovod_ext.patches.patching import replace
from horovod_ext.signatures import require


def install() -> None:
    parameters = ["variables", "root_rank", "process_set", "inplace"]
    replace(functions, "broadcast_variables", parameters, _broadcast_variables)
    # These modules hold references of their own to the same function.
    for module in (hvd, elastic):
        require(module, "broadcast_variables", parameters)
        module.broadcast_variables = functions.broadcast_variables


def _broadcast_variables(stock: Callable) -> Callable:
    def broadcast_variables(variables, root_rank, process_set=hvd.global_process_set, inplace=False):
        variables = [tensorflow_variable(variable) for variable in variables]
        if not variables or not tf.executing_eagerly():
            return stock(variables, root_rank, process_set, inplace)
        # `inplace` only saves memory for the time of the call, and names its messages in a way that cannot be changed.
        label = exchange_name(stock, variables, [variable.shape for variable in variables], process_set)

        @tf.function
        def broadcast_all():
            for i, variable in enumerate(variables):
                name = f"HorovodBroadcast_{label}_{i}"
                variable.assign(hvd.broadcast(variable, root_rank, name=name, ignore_name_scope=True, process_set=process_set))

        return broadcast_all()

    return broadcast_variables
