"""`tf.IndexedSlices`: merged ones, whose ids are unique and ascending, and what is done alike to them and to dense gradients.

Keras 3 never merges slices; its Adam, RMSprop and others then compute moments from one of the duplicates only. So whatever it is given is
merged. A rank merges its own slices once, before it sends or keeps them; the sum over the ranks is merged once:

- `exchange` merges a rank's own slices, and `BucketCodec.decode` returns the sum merged.
- `gradient_reducers.DenseReducer` merges before and after the gathers of stock Horovod.
- Both reducers return a rank's own slices merged where the rank is outside the process set.
- Gradients of local variables reach no reducer; `keras3_optimizer` and `patches.gradient_tape` merge them.
- A tape with a stock compression reduces by stock Horovod, which merges nothing; `patches.gradient_tape` merges the sum.
"""

from __future__ import annotations

import tensorflow as tf

from horovod_ext.contract import Gradient


def merge(slices: tf.IndexedSlices) -> tf.IndexedSlices:
    """Sums the rows of duplicate ids and sorts the ids."""
    order = tf.argsort(slices.indices, stable=True)
    ids = tf.gather(slices.indices, order)
    unique, segments = tf.unique(ids)
    # A sorted segment sum adds in one order on every rank, so that the ranks' weights stay equal to the bit.
    values = tf.math.segment_sum(tf.gather(slices.values, order), segments)
    return tf.IndexedSlices(values, unique, slices.dense_shape)


def merged(gradient: Gradient | None) -> Gradient | None:
    """A gradient whose slices, if it has any, are merged."""
    return merge(gradient) if isinstance(gradient, tf.IndexedSlices) else gradient


def scale(gradient: Gradient, factor: float | tf.Tensor) -> Gradient:
    """A gradient times a factor, in the gradient's dtype."""
    if isinstance(factor, float) and factor == 1.0:
        return gradient
    if isinstance(gradient, tf.IndexedSlices):
        return tf.IndexedSlices(scale(gradient.values, factor), gradient.indices, gradient.dense_shape)
    return gradient * tf.cast(factor, gradient.dtype)
