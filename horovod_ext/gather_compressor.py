"""A Horovod compressor whose payloads are gathered from all ranks, not summed."""

from __future__ import annotations

import horovod.tensorflow as hvd
import tensorflow as tf
from horovod.tensorflow.compression import Compressor

from horovod_ext import messages
from horovod_ext.contract import BucketCodec
from horovod_ext.exchange import exchange
from horovod_ext.once import warn_once


class GatherCompressor(BucketCodec, Compressor):
    """Base of compressors that `horovod_ext` exchanges by gathering payloads. A subclass implements the methods of `BucketCodec`.

    `compress` and `decompress` are Horovod's contract for one tensor, for callers that got hold of Horovod's functions before
    `horovod_ext` was imported. They make one gather per tensor and keep no residual: slower and less accurate than the functions that
    `horovod_ext` installs.
    """

    def compress(self, tensor: tf.Tensor) -> tuple[tf.Tensor, object]:
        """Exchanges a tensor over all ranks and leaves Horovod a single 1.0 to reduce.

        Whatever `op`, `prescale_factor` and `postscale_factor` make of the 1.0 reaches `decompress`. Integers are passed through.

        Args:
            tensor: a float tensor, the same shape on every rank.

        Returns:
            A scalar 1.0 and the context for `decompress`.
        """
        if not tensor.dtype.is_floating:
            return tensor, None
        warn_once(
            "compress() was called by itself: one gather per tensor and no error feedback. Import the compressor's package before taking "
            "functions out of horovod.tensorflow, and call hvd.allreduce(..., compression=...).",
            stacklevel=2,
        )
        (mean,) = exchange(self, [tensor], [None], op=hvd.Average)
        return messages.unfoldable(tf.ones([], tf.float64 if tensor.dtype == tf.float64 else tf.float32)), mean

    def decompress(self, tensor: tf.Tensor, ctx: tf.Tensor | None) -> tf.Tensor:
        """The mean over all ranks, times what Horovod made of the 1.0.

        Args:
            tensor: the reduced scalar.
            ctx: the context from `compress`.

        Returns:
            A tensor with the shape and dtype of the one that was compressed.
        """
        if ctx is None:
            return tensor
        return tf.cast(tf.cast(ctx, tensor.dtype) * tensor, ctx.dtype)


def gathers(compression: object) -> bool:
    """Whether a compression is a GatherCompressor; False for those of stock Horovod.

    Raises:
        ValueError: for what is taken for a compression by mistake, the name or the class of a GatherCompressor.
    """
    if isinstance(compression, str) or (isinstance(compression, type) and issubclass(compression, GatherCompressor)):
        name = compression if isinstance(compression, str) else f"the class {compression.__name__}"
        raise ValueError(f"`compression` must be one of hvd.Compression or a compressor object, like DeepReduce(). Received: {name}.")
    return isinstance(compression, GatherCompressor)
