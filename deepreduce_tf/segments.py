"""The segments of a bucket: one for each gradient. What differs in length between them travels as `tf.RaggedTensor`, a row for each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import tensorflow as tf


class Segments(NamedTuple):
    """What an index codec is told of the segments besides their indices; senders and receivers are told the same.

    Attributes:
        sizes: int64[segments], elements of the dense form of each segment.
        shapes: the dense shape of each segment, int32[rank].
        seed: scalar int64, the same on all ranks.
        step: scalar int64, how often the bucket was exchanged before.
    """

    sizes: tf.Tensor
    shapes: Sequence[tf.Tensor]
    seed: tf.Tensor
    step: tf.Tensor


def ragged(values: tf.Tensor, row_splits: tf.Tensor) -> tf.RaggedTensor:
    """Row i is `values[row_splits[i] : row_splits[i + 1]]`; what ops of this package return needs no check, which would cost ops."""
    return tf.RaggedTensor.from_row_splits(values, row_splits, validate=False)
