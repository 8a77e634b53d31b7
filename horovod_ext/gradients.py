"""The function that optimizers and tapes reduce their gradients with."""

from __future__ import annotations

from collections.abc import Callable

import horovod.tensorflow as hvd
import tensorflow as tf

from horovod_ext import seams, xla
from horovod_ext.exchange import exchange
from horovod_ext.gather_compressor import GatherCompressor, check_op, gathers
from horovod_ext.keras_version import tensorflow_variable

_PARAMETERS = [
    "name",
    "device_dense",
    "device_sparse",
    "compression",
    "sparse_as_dense",
    "op",
    "gradient_predivide_factor",
    "groups",
    "process_set",
]


def install() -> None:
    seams.replace(hvd, "_make_allreduce_grads_fn", _PARAMETERS, _make)


def _make(stock: Callable) -> Callable:
    def _make_allreduce_grads_fn(*args, **kwargs):
        arguments = seams.arguments(stock, args, kwargs)
        if not gathers(arguments["compression"]):
            return stock(**arguments)
        # `groups` asks for fewer, larger messages; buckets already see to that. Devices are the exchange's own affair.
        for ignored in ("groups", "device_dense", "device_sparse"):
            del arguments[ignored]
        return _gathering(**arguments)

    return _make_allreduce_grads_fn


def _gathering(
    name: str,
    compression: GatherCompressor,
    sparse_as_dense: bool,
    op: object,
    gradient_predivide_factor: float,
    process_set: hvd.ProcessSet,
) -> Callable:
    """Reduces lists of gradients with a `GatherCompressor`; called like the function that stock Horovod makes."""
    check_op(op)
    # Only an average has a division to split between before and after the sum.
    predivide = gradient_predivide_factor if op == hvd.Average else 1.0

    def allreduce_grads(grads, vars=None, use_generic_names=False):
        xla.refuse(name)
        if process_set is not hvd.global_process_set and not process_set.included():
            return list(grads)
        variables = [None] * len(grads) if vars is None else [_state_key(variable) for variable in vars]
        with tf.name_scope(f"{name}_Exchange"):
            return exchange(
                compression,
                list(grads),
                variables,
                op=op,
                prescale_factor=1.0 / predivide,
                postscale_factor=predivide,
                process_set=process_set,
                sparse_as_dense=sparse_as_dense,
            )

    return allreduce_grads


def _state_key(variable: object) -> object:
    """What the compressor's state is kept by. A tape may be asked for the gradient of a tensor, which does not outlive the step."""
    variable = tensorflow_variable(variable)
    return variable if isinstance(variable, tf.Variable) else None
