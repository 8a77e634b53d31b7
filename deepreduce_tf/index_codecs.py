"""Index codecs: how the kept places of a bucket become bytes. The bytes are defined in docs/format.md, "Index codes"."""

from __future__ import annotations

import math
from collections.abc import Sequence

import tensorflow as tf

from deepreduce_tf import ops
from deepreduce_tf.stage import Stage, register_stage

APPLICATION_CODEC = 255


class IndexCodec(Stage):
    """Codes the support of each segment.

    Attributes:
        codec_id: the id in the frame (docs/format.md); 255 for codecs that an application defines.
        lossless: whether the support that is decoded is the one that was given.
    """

    codec_id = APPLICATION_CODEC
    lossless = True

    def encode(
        self, indices: tf.Tensor, splits: tf.Tensor, sizes: tf.Tensor, shapes: Sequence[tf.Tensor], seed: tf.Tensor, step: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor, tf.Tensor]:
        """Codes a bucket.

        Args:
            indices: int32[total], ascending strictly within a segment.
            splits: int64[segments + 1]; segment i is [splits[i], splits[i + 1]).
            sizes: int64[segments], places of the dense form of each segment.
            shapes: the dense shape of each segment, int32[rank].
            seed: scalar int64, the same on all ranks.
            step: scalar int64.

        Returns:
            `code` uint8[bytes], `code_splits` int64[segments + 1], and the support that `decode` will give: `indices`, `splits`.
        """
        raise NotImplementedError(f"{type(self).__name__} must implement `encode`")

    def decode(
        self,
        code: tf.Tensor,
        code_splits: tf.Tensor,
        counts: tf.Tensor,
        sizes: tf.Tensor,
        shapes: Sequence[tf.Tensor],
        seed: tf.Tensor,
        step: tf.Tensor,
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Inverse of `encode`.

        Args:
            code: uint8[bytes].
            code_splits: int64[segments + 1].
            counts: int64[segments], kept places of each segment.
            sizes: int64[segments].
            shapes: the dense shape of each segment.
            seed: scalar int64, the sender's.
            step: scalar int64, the sender's.

        Returns:
            `indices` int32[total], `splits` int64[segments + 1].
        """
        raise NotImplementedError(f"{type(self).__name__} must implement `decode`")

    def __call__(self, gradient: tf.Tensor, seed: int = 0, step: int = 0) -> tf.Tensor:
        """The gradient at the support that receivers decode, given that its non-zero places are sent; float32."""
        gradient = tf.convert_to_tensor(gradient, tf.float32)
        flat = tf.reshape(gradient, [-1])
        indices = tf.cast(tf.where(flat != 0)[:, 0], tf.int32)
        size, shape = tf.size(flat, tf.int64)[None], [tf.shape(gradient)]
        splits, scalars = tf.stack([0, tf.size(indices, tf.int64)]), (tf.constant(seed, tf.int64), tf.constant(step, tf.int64))
        code, code_splits, _, splits = self.encode(indices, splits, size, shape, *scalars)
        indices, splits = self.decode(code, code_splits, splits[1:], size, shape, *scalars)
        return tf.reshape(ops.scatter_sum(indices, tf.gather(flat, indices), splits, size, 1.0, N=1)[0], tf.shape(gradient))


class _OpIndexCodec(IndexCodec):
    """A lossless codec whose two directions are C++ ops."""

    op_name: str

    def encode(self, indices, splits, sizes, shapes, seed, step):
        code, code_splits = ops.codec(self.op_name)[0](indices, splits, sizes, seed, step)
        return code, code_splits, indices, splits

    def decode(self, code, code_splits, counts, sizes, shapes, seed, step):
        return ops.codec(self.op_name)[1](code, code_splits, counts, sizes, seed, step)


class SeededSupport(_OpIndexCodec):
    """No bytes at all: what a seeded sparsifier (RandomK) keeps is computed by the receivers. Chosen by DeepReduce itself."""

    codec_id = 0
    op_name = "seeded_support"


@register_stage
class FixedWidth(_OpIndexCodec):
    """Writes each index in as many bits as the segment's size needs: the raw form of all index codecs."""

    codec_id = 1
    op_name = "fixed_width"


@register_stage
class Bitmap(_OpIndexCodec):
    """Writes one bit for each place of the segment: the smallest plain form above about 1 / log2(size) kept."""

    codec_id = 2
    op_name = "bitmap"


@register_stage
class Rice(_OpIndexCodec):
    """Writes the gaps between kept places in a Golomb-Rice code whose parameter is the best one for each segment.

    Within a few percent of the smallest size that any code reaches on places without structure (Rice, "Some practical universal noiseless
    coding techniques", JPL 79-22, 1979).
    """

    codec_id = 3
    op_name = "rice"


@register_stage
class EliasFano(_OpIndexCodec):
    """Writes the high part of each place in unary and its low bits as they are: at most 2 + log2(size / count) bits per index.

    Half a bit more than Rice, and decoded in about half the time (Elias, "Efficient storage and retrieval by content and address of static
    files", Journal of the ACM 21, 1974; Fano, "On the number of bits required to implement an associative memory", MIT Project MAC, 1971).
    """

    codec_id = 4
    op_name = "elias_fano"


@register_stage
class RunLength(_OpIndexCodec):
    """Writes the lengths of the runs of absent and kept places: for gradients whose kept places lie together.

    Run lengths (Golomb, "Run-length encodings", IEEE Transactions on Information Theory 12, 1966) in the gamma code of Elias ("Universal
    codeword sets and representations of the integers", IEEE Transactions on Information Theory 21, 1975).
    """

    codec_id = 5
    op_name = "run_length"


@register_stage
class Adaptive(_OpIndexCodec):
    """Learns while it writes how many places each row and column keeps: for gradients whose units or inputs differ in activity.

    A binary tree of places in a range code (Martin, "Range encoding: an algorithm for removing redundancy from a digitised message", 1979)
    whose chances follow the last two dimensions of a shape; kernel positions share their rows and columns. Never longer than Rice: within
    one percent of the smallest size that any code reaches on places without structure, about 15 % shorter on the gradients of a ResNet-20
    with error feedback, less than half as long on those of dense layers with idle units. 20 to 70 times as slow as Rice.
    """

    codec_id = 9
    op_name = "adaptive"

    def encode(self, indices, splits, sizes, shapes, seed, step):
        known = [tf.get_static_value(shape) for shape in shapes]
        products = tf.constant([-1 if shape is None else math.prod(shape.tolist()) for shape in known], tf.int64)
        dimensions = tf.constant([[1, 1] if shape is None else [1, 1, *shape][-2:] for shape in known], tf.int64, [len(known), 2])
        # Places of `tf.IndexedSlices` are rows alone, so their shape says nothing of them.
        dimensions = tf.where((products == sizes)[:, None], dimensions, 1)
        code, code_splits = ops.codec(self.op_name)[0](indices, splits, sizes, seed, step, dimensions)
        return code, code_splits, indices, splits
