"""Index codecs: how the kept places of a bucket become bytes. The bytes are defined in docs/format/index_codes.md."""

from __future__ import annotations

import math
import numbers
from collections.abc import Sequence

import tensorflow as tf

from deepreduce_tf import ops
from deepreduce_tf.stage import Stage, check_integer, register_stage

APPLICATION_CODEC = 255


class IndexCodec(Stage):
    """Codes the support of each segment.

    Attributes:
        codec_id: the id in the frame (docs/format.md); 255 for codecs that an application defines.
        lossless: whether the support that is decoded is the one that was given.
        regathers: whether the values sent are those at the support that is decoded; otherwise they stay those of the one that was given, in
            order. By default the former, where the codec is not lossless.
    """

    codec_id = APPLICATION_CODEC
    lossless = True

    @property
    def regathers(self) -> bool:
        return not self.lossless

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

    def contraction(self) -> IndexCodec:
        """The codec that encodes under error feedback, of the same class: what is sent must shrink what is left. By default itself.

        Raises:
            ValueError: if there is none, and how to configure the codec so that there is.
        """
        return self

    def __call__(self, gradient: tf.Tensor, seed: int = 0, step: int = 0) -> tf.Tensor:
        """The gradient at the support that receivers decode, given that its non-zero places are sent; float32."""
        check_integer("seed", seed, 0, 2**32 - 1)
        gradient = tf.convert_to_tensor(gradient, tf.float32)
        flat = tf.reshape(gradient, [-1])
        indices = tf.cast(tf.where(flat != 0)[:, 0], tf.int32)
        size, shape = tf.size(flat, tf.int64)[None], [tf.shape(gradient)]
        splits, scalars = tf.stack([0, tf.size(indices, tf.int64)]), (tf.constant(seed, tf.int64), tf.constant(step, tf.int64))
        code, code_splits, _, splits = self.encode(indices, splits, size, shape, *scalars)
        support, splits = self.decode(code, code_splits, splits[1:], size, shape, *scalars)
        values = tf.gather(flat, support if self.regathers else indices)
        return tf.reshape(ops.scatter_sum(support, values, splits, size, 1.0, N=1)[0], tf.shape(gradient))


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
class Huffman(_OpIndexCodec):
    """Writes each gap as its number of bits, in a Huffman code made for the segment, and those bits.

    Within 1 to 3 percent of the smallest size on places without structure up to 10 percent kept, 13 percent above it at half; adapts to any
    distribution of gaps where Rice's single parameter does not (Huffman, "A method for the construction of minimum-redundancy codes",
    Proceedings of the IRE 40, 1952).
    """

    codec_id = 6
    op_name = "huffman"


@register_stage
class DeltaHuffman(_OpIndexCodec):
    """Writes each gap as its number of bytes, in a Huffman code made for the segment, and those 1 to 4 bytes: the keys of SKCompress.

    Takes at least 8 bits per index, which Huffman and Rice do not. Jiang et al., "SketchML: Accelerating distributed machine learning with
    data sketches", SIGMOD 2018, section 3; "SKCompress: compressing sparse and nonuniform gradient in distributed machine learning", The
    VLDB Journal 29, 2020.
    """

    codec_id = 7
    op_name = "delta_huffman"


@register_stage
class BloomFilter(_OpIndexCodec):
    """Writes a Bloom filter of the kept places; both sides ask it about every place, and make a support of those it accepts by a policy.

    Xu et al., "DeepReduce: A Sparse-tensor Communication Framework", NeurIPS 2021, section on Bloom-filter indices; Bloom, "Space/time
    trade-offs in hash coding with allowable errors", Communications of the ACM 13, 1970.

    For those who study the paper, and as a lossy sparsifier at high rates. To send places exactly, Rice takes fewer bytes: p0's best rate
    costs 1.9 to 3.9 times the smallest possible, values of false positives included. A filter takes 14.4 bits for each place at a rate of
    0.001, 9.6 at 0.01, 4.8 at 0.1. There is no raw form; a warning says once where raw (index, value) pairs would be smaller.

    The hash functions change with each step, and false positives with them. Values are those at the support that is sent. DeepReduce codes
    the rows of `tf.IndexedSlices` by Rice instead, since all of them must arrive, and warns.

    Args:
        fpr: false positive rate, 1e-9 to 0.999: the share of the other places that the filter accepts, on average over steps. Up to 12 %
            more between 0.7 and 0.9, where there is one hash function, and up to twice as much where all places, fewer than about 1000,
            lie in one run: neighbours share words.
        policy: what is sent of the accepted places, of which r are those that were given:
            `"p0"`: all. No error, and more values.
            `"p1"`: r at random.
            `"p2"`: r by conflict sets: places with a bit of the filter to themselves, which are no false positives, then places drawn from
            the smallest sets that share a bit.
            `"leftmost"`, `"middle"`, `"rightmost"`: r in a row. Error feedback never sends the places at the other end, about fpr of all.
            `"naive"`: the first r, with the values of the places that were given: wrong after the first false positive. It is kept to
            show why the others exist, and refused with error feedback.
    """

    codec_id = 8
    op_name = "bloom_filter"
    lossless = False
    policies = ("naive", "p0", "p1", "p2", "leftmost", "middle", "rightmost")

    def __init__(self, fpr: float = 0.001, policy: str = "p2"):
        if not isinstance(fpr, numbers.Real) or isinstance(fpr, bool) or not 1e-9 <= fpr <= 0.999:
            raise ValueError(f"`fpr` must be a number in [1e-9, 0.999]. Received: fpr={fpr!r}")
        self.fpr = float(fpr)
        if policy not in self.policies:
            raise ValueError(f"`policy` must be one of {', '.join(self.policies)}. Received: policy={policy!r}")
        self.policy = policy

    @property
    def regathers(self):
        return self.policy != "naive"

    def contraction(self):
        if self.policy == "naive":
            raise ValueError(
                "`policy` must be another with error feedback, which values in wrong places make diverge: use policy='p0', or "
                "error_feedback=False. Received: policy='naive'"
            )
        return self

    def encode(self, indices, splits, sizes, shapes, seed, step):
        return ops.codec(self.op_name)[0](indices, splits, sizes, seed, step, **self.get_config())


@register_stage
class Adaptive(_OpIndexCodec):
    """Learns while it writes how many places each row and column keeps: for gradients whose units or inputs differ in activity.

    A binary tree of places in a range code (Martin, "Range encoding: an algorithm for removing redundancy from a digitised message", 1979)
    whose chances follow the last two dimensions of a shape; kernel positions share their rows and columns. Never longer than Rice: within
    one percent of the smallest size that any code reaches on places without structure, 14 % shorter on the gradients of a ResNet-20
    with error feedback, less than half as long on those of dense layers with idle units. 10 to 70 times as slow as Rice.
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
