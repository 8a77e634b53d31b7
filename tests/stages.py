"""Stages as an application may write them, with TensorFlow ops, the built-in ones, and buckets to try any stage on without other ranks."""

import numpy as np
import tensorflow as tf

from deepreduce_tf import IndexCodec, Segments, Sparsifier, ValueCodec, register_stage
from deepreduce_tf.compressor import bucket_of  # noqa: F401
from deepreduce_tf.stage import registered_stages
from deepreduce_tf.state_variables import make_variable


def built_in(kind, *others):
    """One of each registered stage of a kind that is not an application's, with its default arguments, and `others` that these are not."""
    defaults = [stage() for stage in registered_stages(kind) if stage.__module__.startswith("deepreduce_tf.")]
    return [*defaults, *(stage for stage in others if stage not in defaults)]


def ragged(rows, dtype):
    """Rows of any lengths as stages take them."""
    values = np.concatenate([np.asarray(row, dtype) for row in rows])
    return tf.RaggedTensor.from_row_lengths(values, tf.constant([len(row) for row in rows], tf.int64), validate=False)


def segments_of(shapes, seed=0, step=0):
    """The segments of gradients of these shapes."""
    shapes = [tf.constant(shape, tf.int32, [len(shape)]) for shape in shapes]
    sizes = tf.stack([tf.cast(tf.reduce_prod(shape), tf.int64) for shape in shapes])
    return Segments(sizes, shapes, tf.constant(seed, tf.int64), tf.constant(step, tf.int64))


@register_stage
class EveryNth(Sparsifier):
    """Keeps every n-th element, with a support that differs from rank to rank only by what a gradient is."""

    def __init__(self, n=3):
        self.n = n

    def keep(self, acc, step):
        return tf.range(0, tf.size(acc), self.n)


@register_stage
class WholeIndices(IndexCodec):
    """Writes each index as an int32, exclusive-or a mask that depends on the sender's seed and step."""

    def encode(self, indices, segments):
        masked = self._mask(indices, segments)
        code = tf.RaggedTensor.from_row_splits(tf.reshape(tf.bitcast(masked.values, tf.uint8), [-1]), 4 * indices.row_splits)
        return code, indices

    def decode(self, code, counts, segments):
        indices = tf.bitcast(tf.reshape(code.values, [-1, 4]), tf.int32)
        return self._mask(tf.RaggedTensor.from_row_lengths(indices, counts), segments)

    def _mask(self, indices, segments):
        return indices.with_values(tf.bitwise.bitwise_xor(indices.values, tf.cast(segments.seed + segments.step, tf.int32)))


@register_stage
class LowerHalf(IndexCodec):
    """Not lossless: sends the number of indices alone; receivers take the first ones."""

    lossless = False

    def encode(self, indices, segments):
        return tf.cast(indices[:, :0], tf.uint8), self.decode(None, indices.row_lengths(), segments)

    def decode(self, code, counts, segments):
        return tf.cast(tf.ragged.range(counts), tf.int32)


@register_stage
class HalfPrecision(ValueCodec):
    """Casts to float16."""

    def encode(self, values, seed, step):
        half = tf.cast(values.values, tf.float16)
        code = tf.RaggedTensor.from_row_splits(tf.reshape(tf.bitcast(half, tf.uint8), [-1]), 2 * values.row_splits)
        return code, values.with_values(tf.cast(half, tf.float32))

    def decode(self, code, counts):
        half = tf.bitcast(tf.reshape(code.values, [-1, 2]), tf.float16)
        return tf.RaggedTensor.from_row_lengths(tf.cast(half, tf.float32), counts)


def residuals_of(arrays):
    """Residual variables that hold these arrays."""
    variables = [make_variable(f"residual_{i}", array.shape, tf.float32) for i, array in enumerate(arrays)]
    for variable, array in zip(variables, arrays, strict=True):
        variable.assign(array)
    return variables
