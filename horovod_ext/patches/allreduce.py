"""`allreduce`, `grouped_allreduce`, `reducescatter` and `grouped_reducescatter` of `horovod.tensorflow`, and `horovod._keras.allreduce`."""

from __future__ import annotations

from collections.abc import Callable

import horovod._keras as hvd_keras
import horovod.tensorflow as hvd
import tensorflow as tf

from horovod_ext import xla
from horovod_ext.contract import check_op
from horovod_ext.exchange import exchange
from horovod_ext.gather_compressor import gathers
from horovod_ext.keras_version import tensorflow_variable
from horovod_ext.once import warn_once
from horovod_ext.patches.patching import replace
from horovod_ext.signatures import arguments

_DEVICES = ["device_dense", "device_sparse"]
_SCALES = ["prescale_factor", "postscale_factor"]


def install() -> None:
    reduce = ["average", *_DEVICES, "compression", "op", *_SCALES]
    replace(hvd, "allreduce", ["tensor", *reduce, "name", "process_set", "ignore_name_scope"], _allreduce)
    replace(hvd, "grouped_allreduce", ["tensors", *reduce, "process_set", "ignore_name_scope", "name"], _grouped_allreduce)
    scatter = ["device_dense", "compression", "op"]
    replace(hvd, "reducescatter", ["tensor", *scatter, "name", "process_set", "ignore_name_scope", *_SCALES], _reducescatter)
    replace(hvd, "grouped_reducescatter", ["tensors", *scatter, "process_set", *_SCALES], _reducescatter)
    keras = ["backend", "value", "name", "average", *_SCALES, "op", "compression"]
    replace(hvd_keras, "allreduce", keras, _keras_allreduce)


def _allreduce(stock: Callable) -> Callable:
    def allreduce(*args, **kwargs):
        call = arguments(stock, args, kwargs)
        if not gathers(call["compression"]):
            return stock(*args, **kwargs)
        return _exchange(call, [call["tensor"]], [call["name"]])[0]

    return allreduce


def _grouped_allreduce(stock: Callable) -> Callable:
    def grouped_allreduce(*args, **kwargs):
        call = arguments(stock, args, kwargs)
        tensors, name = call["tensors"], call["name"]
        if not gathers(call["compression"]) or not tensors:
            return stock(*args, **kwargs)
        return _exchange(call, tensors, [None if name is None else f"{name}_{i}" for i in range(len(tensors))])

    return grouped_allreduce


def _exchange(call: dict, tensors: list, names: list[str | None]) -> list:
    op = hvd.handle_average_backwards_compatibility(call["op"], call["average"])
    check_op(op)
    xla.refuse("hvd.allreduce")
    if None in names:
        warn_once(
            "hvd.allreduce of a tensor without a name has no error feedback: what a lossy compression leaves out is lost. Pass name=...",
            stacklevel=3,
        )
    tensors = [t if isinstance(t, tf.IndexedSlices) else tf.convert_to_tensor(tensorflow_variable(t)) for t in tensors]
    for tensor, name in zip(tensors, names, strict=True):
        if not tensor.dtype.is_floating:
            raise ValueError(
                f"A GatherCompressor takes floating point tensors. Received: {name or 'a tensor'} of dtype {tensor.dtype.name}. "
                "Reduce it with compression=hvd.Compression.none."
            )
    return exchange(
        call["compression"],
        tensors,
        names,
        op=op,
        prescale_factor=call["prescale_factor"],
        postscale_factor=call["postscale_factor"],
        process_set=call["process_set"],
    )


def _reducescatter(stock: Callable) -> Callable:
    def reducescatter(*args, **kwargs):
        compression = arguments(stock, args, kwargs)["compression"]
        if gathers(compression):
            raise ValueError(
                f"A GatherCompressor supports hvd.allreduce and hvd.grouped_allreduce. Received: hvd.{stock.__name__} with "
                f"compression={type(compression).__name__}. Use one of the two, or compression=hvd.Compression.none."
            )
        return stock(*args, **kwargs)

    return reducescatter


def _keras_allreduce(stock: Callable) -> Callable:
    def allreduce(backend, value, name, average, prescale_factor, postscale_factor, op, compression):
        # horovod.keras.allreduce passes its default average=True along with the user's op, which Horovod then refuses as a contradiction.
        if op is not None and average is True:
            average = None
        if not gathers(compression):
            return stock(backend, value, name, average, prescale_factor, postscale_factor, op, compression)
        result = hvd.allreduce(
            tf.convert_to_tensor(tensorflow_variable(value)),
            average=average,
            op=op,
            name=name,  # stock gives it to a constant only; here it is what the residual is kept by
            compression=compression,
            prescale_factor=prescale_factor,
            postscale_factor=postscale_factor,
        )
        return hvd_keras._eval(backend, result)

    return allreduce
