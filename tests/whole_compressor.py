"""A compressor that gathers every gradient whole: exact, so that what `horovod_ext` does with a compressor can be compared to the bit."""

import tensorflow as tf
from tensorflow.python.ops.resource_variable_ops import ResourceVariable

from horovod_ext import Encoded, GatherCompressor


class Whole(tf.Module, GatherCompressor):
    min_size = 0
    bucket_bytes = 1 << 20

    def __init__(self):
        super().__init__()
        self.steps = {}
        self.owners = []  # the variables of each exchange that was traced
        self.labels = []  # of each bucket that was traced

    def slots(self, variables, shapes):
        self.owners.append(list(variables))
        return [None if variable is None else getattr(variable, "name", variable) for variable in variables]

    def _counter(self, slots):
        key = "_".join("".join(filter(str.isalnum, str(slot))) for slot in slots)
        if key not in self.steps:
            with tf.init_scope():
                self.steps[key] = ResourceVariable(
                    tf.zeros([], tf.int64), trainable=False, collections=[tf.compat.v1.GraphKeys.LOCAL_VARIABLES]
                )
        return self.steps[key]

    def step(self, slots):
        return self._counter(slots).read_value()

    def advance(self, slots):
        return self._counter(slots).assign_add(1, read_value=False)

    def encode(self, bucket):
        self.labels.append(list(bucket.labels))
        flat = [tf.reshape(tf.convert_to_tensor(gradient), [-1]) for gradient in bucket.gradients]
        words = [tf.cast(tf.bitcast(values, tf.int32), tf.int64) for values in flat]
        return Encoded(payload=tf.concat(words, 0) + 0 * bucket.step, commit=lambda: [])

    def decode(self, payloads, bucket, scale):
        shapes = [g.dense_shape if isinstance(g, tf.IndexedSlices) else tf.shape(g) for g in bucket.gradients]
        sizes = [tf.cast(tf.reduce_prod(shape), tf.int32) for shape in shapes]
        rows = tf.reshape(tf.bitcast(tf.cast(payloads, tf.int32), tf.float32), [-1, tf.add_n(sizes)])
        total = tf.split(scale * tf.reduce_sum(rows, 0), sizes)
        return [self._like(g, tf.reshape(t, s)) for g, t, s in zip(bucket.gradients, total, shapes, strict=True)]

    @staticmethod
    def _like(gradient, total):
        if isinstance(gradient, tf.IndexedSlices):
            return tf.IndexedSlices(total, tf.range(tf.shape(total)[0], dtype=gradient.indices.dtype), gradient.dense_shape)
        return tf.ensure_shape(total, gradient.shape)
