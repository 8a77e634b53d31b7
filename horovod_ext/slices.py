"""What is done alike to dense gradients and `tf.IndexedSlices`, and slices whose ids are unique and ascending."""

from __future__ import annotations

import tensorflow as tf


def merge(slices: tf.IndexedSlices) -> tf.IndexedSlices:
    """Sums the rows of duplicate ids and sorts the ids.

    Keras 3 never does this itself; its Adam, RMSprop and others then compute moments from one of the duplicates only.
    """
    order = tf.argsort(slices.indices, stable=True)
    ids = tf.gather(slices.indices, order)
    unique, segments = tf.unique(ids)
    # A sorted segment sum adds in one order on every rank, so that the ranks' weights stay equal to the bit.
    values = tf.math.segment_sum(tf.gather(slices.values, order), segments)
    return tf.IndexedSlices(values, unique, slices.dense_shape)


def scale(gradient: tf.Tensor | tf.IndexedSlices, factor: float | tf.Tensor) -> tf.Tensor | tf.IndexedSlices:
    """A gradient times a factor, in the gradient's dtype."""
    if isinstance(factor, float) and factor == 1.0:
        return gradient
    if isinstance(gradient, tf.IndexedSlices):
        return tf.IndexedSlices(scale(gradient.values, factor), gradient.indices, gradient.dense_shape)
    return gradient * tf.cast(factor, gradient.dtype)
