"""Rows of `tf.IndexedSlices`: all of them are sent, and those of the same id are added where they arrive."""

from __future__ import annotations

import tensorflow as tf

from deepreduce_tf.segments import ragged
from deepreduce_tf.sparsifiers import Selection


def select_rows(slices: tf.IndexedSlices, width: tf.Tensor) -> Selection:
    """The ids of the rows as the support: nothing is left out, so there is nothing to feed back.

    Args:
        slices: with ascending ids.
        width: scalar int64, values of a row.
    """
    ids = tf.cast(slices.indices, tf.int32)
    splits = tf.stack([0, tf.size(ids, tf.int64)])
    return Selection(ragged(ids, splits), ragged(tf.reshape(slices.values, [-1]), splits * width))


def merge_rows(indices: tf.Tensor, values: tf.Tensor, like: tf.IndexedSlices) -> tf.IndexedSlices:
    """The rows of all ranks, those of the same id added in the order of the ranks.

    Args:
        indices: int32[rows], the ids of all ranks.
        values: float32[rows * width].
        like: the slices of this rank, for the shape of a row.
    """
    order = tf.argsort(indices, stable=True)
    unique, segments = tf.unique(tf.gather(indices, order))
    row = tf.cast(like.dense_shape[1:], tf.int32)
    rows = tf.gather(tf.reshape(values, tf.concat([[-1], row], 0)), order)
    return tf.IndexedSlices(tf.math.segment_sum(rows, segments), unique, like.dense_shape)
