"""A Horovod compressor whose payloads are gathered from all ranks, not summed."""

from __future__ import annotations

import abc
import dataclasses
import warnings
from collections.abc import Callable, Sequence

import horovod.tensorflow as hvd
import tensorflow as tf
from horovod.tensorflow.compression import Compressor


@dataclasses.dataclass(frozen=True, eq=False)  # a key for what a compressor knows of a bucket
class Bucket:
    """The gradients that one gather carries.

    Attributes:
        gradients: float32 tensors of any shape, or float32 `tf.IndexedSlices` with merged, ascending ids. Never both in one bucket.
        slots: for each gradient, what `GatherCompressor.slots` returned for its variable.
        labels: for each gradient, the leaf name of its variable and its dtype: a text that is the same on every rank.
        step: scalar int64 tensor: how often these gradients were exchanged before.
        rank: scalar int64 tensor: rank of this process.
        number: position of this bucket among those of one exchange.
        ranks: scalar int32 tensor: how many ranks take part, which is how many payloads come back.
    """

    gradients: Sequence[tf.Tensor | tf.IndexedSlices]
    slots: Sequence[object]
    labels: Sequence[str]
    step: tf.Tensor
    rank: tf.Tensor
    number: int
    ranks: tf.Tensor | int = 1


@dataclasses.dataclass(frozen=True)
class Encoded:
    """What a rank sends for a bucket.

    Attributes:
        payload: int64[n]; must depend on a stateful op or on a variable, or TensorFlow folds constant payloads away on one rank.
        commit: builds the ops that record what was sent; called under a control dependency on the gather.
        stats: what `GatherCompressor.record` wants to know of this bucket.
    """

    payload: tf.Tensor
    commit: Callable[[], Sequence[tf.Operation]]
    stats: object = None


@dataclasses.dataclass(frozen=True)
class ExchangeMetrics:
    """What one exchange cost this rank. All are scalar float64 tensors.

    Attributes:
        small_bytes: bytes of the gradients that were averaged densely.
        dense_bytes: bytes of all gradients in float32.
        encode_seconds: from the gradients of a bucket to its payload, added over the buckets.
        exchange_seconds: gathers, added over the buckets.
        decode_seconds: from the gathered payloads to the results, added over the buckets.
    """

    small_bytes: tf.Tensor
    dense_bytes: tf.Tensor
    encode_seconds: tf.Tensor
    exchange_seconds: tf.Tensor
    decode_seconds: tf.Tensor


class GatherCompressor(Compressor, abc.ABC):
    """Base of compressors that `horovod_ext` exchanges by gathering payloads.

    Attributes:
        min_size: gradients with fewer elements are averaged densely.
        bucket_bytes: dense bytes after which a bucket is closed.
    """

    min_size: int
    bucket_bytes: int

    @abc.abstractmethod
    def slots(self, variables: Sequence[object], shapes: Sequence[tf.TensorShape]) -> Sequence[object]:
        """The compressor's state for each variable, created on first use. Called while a step is being traced.

        Args:
            variables: `tf.Variable`s, names of plain tensors, or None.
            shapes: the shape of each gradient's dense form.
        """

    @abc.abstractmethod
    def step(self, slots: Sequence[object]) -> tf.Tensor:
        """How often exactly these slots were exchanged before: scalar int64."""

    @abc.abstractmethod
    def advance(self, slots: Sequence[object]) -> tf.Operation:
        """Counts an exchange of these slots."""

    @abc.abstractmethod
    def encode(self, bucket: Bucket) -> Encoded:
        """Turns the gradients of a bucket into one payload."""

    @abc.abstractmethod
    def decode(self, payloads: tf.Tensor, bucket: Bucket, scale: tf.Tensor) -> Sequence[tf.Tensor | tf.IndexedSlices]:
        """The sum over all ranks, times `scale`, for each gradient of the bucket.

        Args:
            payloads: int64[m]: the payloads of all ranks, end to end, in rank order.
            bucket: the bucket that this rank encoded.
            scale: scalar float32 tensor.

        Returns:
            float32 tensors or `tf.IndexedSlices`, shaped like `bucket.gradients`.
        """

    def record(self, encoded: Sequence[Encoded], metrics: ExchangeMetrics) -> Sequence[tf.Operation]:
        """Ops that note what an exchange cost. By default none."""
        return []

    def compress(self, tensor: tf.Tensor) -> tuple[tf.Tensor, object]:
        """Horovod's contract for one tensor, for callers that got hold of Horovod's functions before `horovod_ext` was imported.

        Exchanges the tensor over all ranks and leaves Horovod a single 1.0 to reduce, so that whatever `op`, `prescale_factor` and
        `postscale_factor` make of it reaches `decompress`. One gather per tensor and no residual: slower and less accurate than the
        functions that `horovod_ext` installs. Integers are passed through.

        Args:
            tensor: a float tensor, the same shape on every rank.

        Returns:
            A scalar 1.0 and the context for `decompress`.
        """
        if not tensor.dtype.is_floating:
            return tensor, None
        from horovod_ext.exchange import exchange  # exchange imports this module

        _warn_stand_alone()
        (mean,) = exchange(self, [tensor], [None], op=hvd.Average)
        one = tf.ones([], tf.float64 if tensor.dtype == tf.float64 else tf.float32)
        # TensorFlow may fold a reduction of a constant, and merge it with the next tensor's; it cannot do so for a placeholder.
        return tf.compat.v1.placeholder_with_default(one, []), mean

    def decompress(self, tensor: tf.Tensor, ctx: object) -> tf.Tensor:
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


def check_op(op: object) -> None:
    """Raises a ValueError unless `op` is one that gathered payloads can be reduced with."""
    if op not in (hvd.Average, hvd.Sum):
        named = {hvd.Adasum: "hvd.Adasum", hvd.Min: "hvd.Min", hvd.Max: "hvd.Max", hvd.Product: "hvd.Product"}
        raise ValueError(
            "A GatherCompressor supports op=hvd.Average and op=hvd.Sum. "
            f"Received: op={named.get(op, repr(op))}. Use one of the two, or compression=hvd.Compression.none."
        )


_warned_stand_alone = False


def _warn_stand_alone() -> None:
    global _warned_stand_alone
    if not _warned_stand_alone:
        _warned_stand_alone = True
        warnings.warn(
            "compress() was called by itself: one gather per tensor and no error feedback. Import the compressor's package before taking "
            "functions out of horovod.tensorflow, and call hvd.allreduce(..., compression=...).",
            stacklevel=3,
        )
