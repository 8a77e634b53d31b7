"""What an exchange needs of a compressor."""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import horovod.tensorflow as hvd
import tensorflow as tf

Gradient: TypeAlias = tf.Tensor | tf.IndexedSlices


@dataclasses.dataclass(frozen=True, eq=False)
class Bucket:
    """The gradients that one gather carries. `encode` and `decode` get the same object, by which a codec may keep what it knows of it.

    Attributes:
        gradients: float32 tensors of any shape, or float32 `tf.IndexedSlices` with merged, ascending ids. Never both in one bucket.
        slots: for each gradient, what `BucketCodec.slots` returned for its variable.
        labels: for each gradient, the leaf name of its variable and its dtype: a text that is the same on every rank.
        step: scalar int64 tensor: how often these gradients were exchanged before.
        rank: scalar int64 tensor: rank of this process.
        number: position of this bucket among those of one exchange.
        ranks: scalar int32 tensor: how many ranks take part, which is how many payloads come back.
    """

    gradients: Sequence[Gradient]
    slots: Sequence[Any]
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
        stats: what `BucketCodec.record` wants to know of this bucket.
    """

    payload: tf.Tensor
    commit: Callable[[], Sequence[tf.Operation]]
    stats: Any = None


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


class BucketCodec(abc.ABC):
    """Encodes the gradients of a bucket into a payload, and decodes the payloads of all ranks into their sum.

    Attributes:
        min_size: gradients with fewer elements are averaged densely.
        bucket_bytes: dense bytes after which a bucket is closed.
    """

    min_size: int
    bucket_bytes: int

    @abc.abstractmethod
    def slots(self, variables: Sequence[object], shapes: Sequence[tf.TensorShape]) -> Sequence[Any]:
        """The codec's state for each variable, created on first use. Called while a step is being traced.

        Args:
            variables: `tf.Variable`s, names of plain tensors, or None.
            shapes: the shape of each gradient's dense form.
        """

    @abc.abstractmethod
    def step(self, slots: Sequence[Any]) -> tf.Tensor:
        """How often exactly these slots were exchanged before: scalar int64."""

    @abc.abstractmethod
    def advance(self, slots: Sequence[Any]) -> tf.Operation:
        """Counts an exchange of these slots."""

    @abc.abstractmethod
    def encode(self, bucket: Bucket) -> Encoded:
        """Turns the gradients of a bucket into one payload."""

    @abc.abstractmethod
    def decode(self, payloads: tf.Tensor, bucket: Bucket, scale: tf.Tensor) -> Sequence[Gradient]:
        """The sum over all ranks, times `scale`, for each gradient of the bucket.

        Args:
            payloads: int64[m]: the payloads of all ranks, end to end, in rank order.
            bucket: the bucket that this rank encoded.
            scale: scalar float32 tensor.

        Returns:
            float32 tensors or `tf.IndexedSlices`, shaped like `bucket.gradients`. The ids of slices are merged and ascending.
        """

    def record(self, encoded: Sequence[Encoded], metrics: ExchangeMetrics) -> Sequence[tf.Operation]:
        """Ops that note what an exchange cost. By default none."""
        return []


def check_op(op: object) -> None:
    """Raises a ValueError unless `op` is one that gathered payloads can be reduced with."""
    if op not in (hvd.Average, hvd.Sum):
        named = {hvd.Adasum: "hvd.Adasum", hvd.Min: "hvd.Min", hvd.Max: "hvd.Max", hvd.Product: "hvd.Product"}
        raise ValueError(
            "A GatherCompressor supports op=hvd.Average and op=hvd.Sum. "
            f"Received: op={named.get(op, repr(op))}. Use one of the two, or compression=hvd.Compression.none."
        )
