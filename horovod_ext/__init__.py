"""Horovod for gradients that are gathered, and for Keras 3.

`import horovod_ext` teaches the installed, unmodified Horovod 0.28.1 two things:

- a `GatherCompressor` is honoured wherever a compression is accepted: optimizers, tapes, `allreduce`, `grouped_allreduce`;
- with Keras 3, `DistributedOptimizer`, tapes, callbacks and broadcasts really exchange, with any compression.

A seam that this Horovod, Keras or TensorFlow does not have is an `ImportError` here, never training on one rank alone.
"""

from horovod_ext import broadcast, callbacks, direct, gradients, keras3, loss_scale, optimizers, sessions, tape
from horovod_ext.gather_compressor import Bucket, Encoded, GatherCompressor, ExchangeMetrics

__all__ = ["Bucket", "Encoded", "GatherCompressor", "ExchangeMetrics"]

for _module in (gradients, tape, keras3, optimizers, loss_scale, direct, broadcast, callbacks, sessions):
    _module.install()
