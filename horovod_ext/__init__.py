"""Horovod for gradients that are gathered, and for Keras 3.

`import horovod_ext` teaches the installed, unmodified Horovod 0.28.1 two things:

- a `GatherCompressor` is honoured wherever a compression is accepted: optimizers, tapes, `allreduce`, `grouped_allreduce`;
- with Keras 3, `DistributedOptimizer`, tapes, callbacks and broadcasts really exchange, with any compression.

It does so by patches of Horovod and Keras. A function to patch that this Horovod, Keras or TensorFlow does not have is an `ImportError`
here, never training on one rank alone.
"""

from horovod_ext import patches
from horovod_ext.contract import Bucket, Encoded, ExchangeMetrics
from horovod_ext.gather_compressor import GatherCompressor

__all__ = ["Bucket", "Encoded", "ExchangeMetrics", "GatherCompressor"]

patches.install()
