"""Decoding by the methods of the stages, where the C++ decoder does not know a codec because an application defines it."""

from __future__ import annotations

import tensorflow as tf

from deepreduce_tf import ops
from deepreduce_tf.bucket_layout import BucketLayout
from deepreduce_tf.index_codecs import IndexCodec
from deepreduce_tf.segments import Segments, ragged
from deepreduce_tf.value_codecs import ValueCodec


def decode_frames(
    payloads: tf.Tensor, ranks: tf.Tensor, layout: BucketLayout, fingerprint: tf.Tensor, index: IndexCodec, value: ValueCodec
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """What `ops.frame_decode` returns, one rank after the other.

    Args:
        payloads: int64[n], frames end to end.
        ranks: scalar, how many frames.
        layout: of the bucket.
        fingerprint: scalar int64.
        index: the codec that decodes the indices.
        value: the codec that decodes the values.

    Returns:
        indices int32[total], values float32[total values], and splits int64[ranks * segments + 1] of the indices.
    """

    def add_rank(rank: tf.Tensor, all_indices: tf.Tensor, all_values: tf.Tensor, all_counts: tf.Tensor) -> tuple[tf.Tensor, ...]:
        frame = ops.frame_unpack(
            payloads, layout.sizes, fingerprint, layout.widths, rank, index_codec=index.codec_id, value_codec=value.codec_id
        )
        segments = Segments(layout.sizes, layout.shapes, frame.seed, frame.step)
        indices = index.decode(ragged(frame.index_code, frame.index_splits), frame.counts, segments)
        values = value.decode(ragged(frame.value_code, frame.value_splits), frame.counts * layout.widths)
        pairs = ((all_indices, indices.values), (all_values, values.values), (all_counts, frame.counts))
        return (rank + 1, *(tf.concat(pair, 0) for pair in pairs))

    none = (tf.zeros([], tf.int64), tf.zeros([0], tf.int32), tf.zeros([0], tf.float32), tf.zeros([0], tf.int64))
    shapes = tuple(tf.TensorShape(shape) for shape in ([], [None], [None], [None]))
    ranks = tf.cast(ranks, tf.int64)
    _, indices, values, counts = tf.while_loop(lambda rank, *_: rank < ranks, add_rank, none, shapes, parallel_iterations=1)
    return indices, values, tf.concat([[0], tf.cumsum(counts)], 0)
