"""Stages as an application may write them, with TensorFlow ops, and buckets to try any stage on without other ranks."""

import tensorflow as tf

from deepreduce_tf import IndexCodec, Sparsifier, ValueCodec, register_stage
from deepreduce_tf.error_feedback import Slot, make_variable
from horovod_ext import Bucket


@register_stage
class EveryNth(Sparsifier):
    """Keeps every n-th place, with a support that differs from rank to rank only by what a gradient is."""

    def __init__(self, n=3):
        self.n = n

    def keep(self, acc, step):
        return tf.range(0, tf.size(acc), self.n)


@register_stage
class WholeIndices(IndexCodec):
    """Writes each place as an int32, exclusive-or a mask that depends on the sender's seed and step."""

    def encode(self, indices, splits, sizes, shapes, seed, step):
        mask = tf.cast(seed + step, tf.int32)
        code = tf.reshape(tf.bitcast(tf.bitwise.bitwise_xor(indices, mask), tf.uint8), [-1])
        return code, 4 * splits, indices, splits

    def decode(self, code, code_splits, counts, sizes, shapes, seed, step):
        mask = tf.cast(seed + step, tf.int32)
        indices = tf.bitwise.bitwise_xor(tf.bitcast(tf.reshape(code, [-1, 4]), tf.int32), mask)
        return indices, tf.concat([[0], tf.cumsum(counts)], 0)


@register_stage
class LowerHalf(IndexCodec):
    """Not lossless: sends the number of places alone; receivers take the first ones."""

    lossless = False

    def encode(self, indices, splits, sizes, shapes, seed, step):
        counts = splits[1:] - splits[:-1]
        return tf.zeros([0], tf.uint8), tf.zeros_like(splits), self._first(counts), splits

    def decode(self, code, code_splits, counts, sizes, shapes, seed, step):
        return self._first(counts), tf.concat([[0], tf.cumsum(counts)], 0)

    def _first(self, counts):
        return tf.cast(tf.ragged.range(counts).flat_values, tf.int32)


@register_stage
class HalfPrecision(ValueCodec):
    """Casts to float16."""

    def encode(self, values, splits, seed, step):
        half = tf.cast(values, tf.float16)
        return tf.reshape(tf.bitcast(half, tf.uint8), [-1]), 2 * splits, tf.cast(half, tf.float32)

    def decode(self, code, code_splits, counts):
        return tf.cast(tf.bitcast(tf.reshape(code, [-1, 2]), tf.float16), tf.float32)


def bucket_of(gradients, residuals=(), step=0, rank=0, ranks=1, labels=None):
    """A bucket of float32 gradients, with or without residuals."""
    gradients = [g if isinstance(g, tf.IndexedSlices) else tf.convert_to_tensor(g, tf.float32) for g in gradients]
    return Bucket(
        gradients=gradients,
        slots=[Slot(residual) for residual in residuals or [None] * len(gradients)],
        labels=labels or ["gradient float32"] * len(gradients),
        step=tf.convert_to_tensor(step, tf.int64),
        rank=tf.constant(rank, tf.int64),
        number=0,
        ranks=tf.constant(ranks),
    )


def residuals_of(arrays):
    """Residual variables that hold these arrays."""
    variables = [make_variable(f"residual_{i}", array.shape, tf.float32) for i, array in enumerate(arrays)]
    for variable, array in zip(variables, arrays, strict=True):
        variable.assign(array)
    return variables
