"""`horovod.tensorflow._make_allreduce_grads_fn`, which makes what optimizers and tapes reduce their gradients with."""

from __future__ import annotations

from collections.abc import Callable

import horovod.tensorflow as hvd

from horovod_ext.gather_compressor import gathers
from horovod_ext.gradient_reducers import GatheringReducer
from horovod_ext.patches.patching import replace
from horovod_ext.signatures import arguments

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
    replace(hvd, "_make_allreduce_grads_fn", _PARAMETERS, _make)


def _make(stock: Callable) -> Callable:
    def _make_allreduce_grads_fn(*args, **kwargs):
        options = arguments(stock, args, kwargs)
        if not gathers(options["compression"]):
            return stock(**options)
        # `groups` asks for fewer, larger messages; buckets already see to that. Devices are the exchange's own affair.
        for ignored in ("groups", "device_dense", "device_sparse"):
            del options[ignored]
        return GatheringReducer(**options)

    return _make_allreduce_grads_fn
