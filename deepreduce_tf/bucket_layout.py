"""What sender and receivers both know of a bucket before a frame is read: its sizes, row lengths and shapes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import tensorflow as tf


class BucketLayout(NamedTuple):
    """The segments of a bucket, one for each gradient.

    Attributes:
        rows: whether the gradients are `tf.IndexedSlices`, whose indices are those of rows.
        sizes: int64[segments], elements of the dense form; of `tf.IndexedSlices` its rows.
        widths: int64[segments], values for each index: 1, or those of a row of `tf.IndexedSlices`.
        shapes: the dense shape of each segment, int32[rank].
    """

    rows: bool
    sizes: tf.Tensor
    widths: tf.Tensor
    shapes: Sequence[tf.Tensor]

    def reshape(self, flat: Sequence[tf.Tensor]) -> list[tf.Tensor]:
        """Dense tensors of one dimension in the shapes of the segments."""
        return [tf.reshape(tensor, shape) for tensor, shape in zip(flat, self.shapes, strict=True)]


def layout_of(gradients: Sequence[tf.Tensor | tf.IndexedSlices]) -> BucketLayout:
    """The layout of a bucket's gradients, which are all dense or all `tf.IndexedSlices`."""
    if isinstance(gradients[0], tf.IndexedSlices):
        sizes = tf.stack([tf.cast(slices.dense_shape[0], tf.int64) for slices in gradients])
        widths = tf.stack([tf.cast(tf.reduce_prod(slices.dense_shape[1:]), tf.int64) for slices in gradients])
        return BucketLayout(True, sizes, widths, [tf.cast(slices.dense_shape, tf.int32) for slices in gradients])
    sizes = tf.stack([tf.size(gradient, tf.int64) for gradient in gradients])
    return BucketLayout(False, sizes, tf.ones_like(sizes), [tf.shape(gradient) for gradient in gradients])
