"""`broadcast_variables` for Keras 3 variables."""

from __future__ import annotations

from collections.abc import Callable

import horovod.tensorflow as hvd
from horovod.tensorflow import elastic, functions

from horovod_ext import seams
from horovod_ext.keras_version import tensorflow_variable


def install() -> None:
    parameters = ["variables", "root_rank", "process_set", "inplace"]
    seams.replace(functions, "broadcast_variables", parameters, _broadcast_variables)
    # These modules hold references of their own to the same function.
    for module in (hvd, elastic):
        seams.require(module, "broadcast_variables", parameters)
        module.broadcast_variables = functions.broadcast_variables


def _broadcast_variables(stock: Callable) -> Callable:
    def broadcast_variables(variables, root_rank, *args, **kwargs):
        return stock([tensorflow_variable(variable) for variable in variables], root_rank, *args, **kwargs)

    return broadcast_variables
