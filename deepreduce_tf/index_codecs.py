"""Index codecs: how the kept indices of a bucket become bytes. The bytes are defined in docs/format/index_codes.md."""

from __future__ import annotations

import math

import tensorflow as tf

from deepreduce_tf import ops
from deepreduce_tf.codec import Codec, OpCodec
from deepreduce_tf.segments import Segments, ragged
from deepreduce_tf.stage import check_integer, is_number, register_stage


class IndexCodec(Codec):
    """Codes the support of each segment.

    Attributes:
        lossless: whether the support that is decoded is the one that was given.
        regathers: whether the values sent are those at the support that is decoded; otherwise they stay those of the one that was given, in
            order. By default the former, where the codec is not lossless.
    """

    lossless: bool = True

    @property
    def regathers(self) -> bool:
        return not self.lossless

    def encode(self, indices: tf.RaggedTensor, segments: Segments) -> tuple[tf.RaggedTensor, tf.RaggedTensor]:
        """Codes a bucket.

        Args:
            indices: int32[segments, (count)], ascending strictly within a segment.
            segments: their sizes and shapes, seed and step.

        Returns:
            The code, uint8[segments, (bytes)], and the support that `decode` will give, like `indices`.
        """
        raise NotImplementedError(f"{type(self).__name__} must implement `encode`")

    def decode(self, code: tf.RaggedTensor, counts: tf.Tensor, segments: Segments) -> tf.RaggedTensor:
        """Inverse of `encode`.

        Args:
            code: uint8[segments, (bytes)].
            counts: int64[segments], how many indices each segment keeps.
            segments: the sender's.

        Returns:
            The support, int32[segments, (count)].
        """
        raise NotImplementedError(f"{type(self).__name__} must implement `decode`")

    def __call__(self, gradient: tf.Tensor, seed: int = 0, step: int = 0) -> tf.Tensor:
        """The gradient at the support that receivers decode, given that its non-zero elements are sent; float32."""
        check_integer("seed", seed, 0, 2**32 - 1)
        gradient = tf.convert_to_tensor(gradient, tf.float32)
        flat = tf.reshape(gradient, [-1])
        segments = Segments(tf.size(flat, tf.int64)[None], [tf.shape(gradient)], tf.constant(seed, tf.int64), tf.constant(step, tf.int64))
        kept = tf.cast(tf.where(flat != 0)[:, 0], tf.int32)
        indices = ragged(kept, tf.stack([0, tf.size(kept, tf.int64)]))
        code, sent = self.encode(indices, segments)
        support = self.decode(code, sent.row_lengths(), segments)
        values = tf.gather(flat, (support if self.regathers else indices).values)
        (seen,) = ops.scatter_sum(support.values, values, support.row_splits, segments.sizes, 1.0, N=1)
        return tf.reshape(seen, tf.shape(gradient))


class _OpIndexCodec(OpCodec, IndexCodec):
    """A codec whose two directions are C++ ops. An encoding op that returns no support is lossless."""

    def encode(self, indices: tf.RaggedTensor, segments: Segments) -> tuple[tf.RaggedTensor, tf.RaggedTensor]:
        code, code_splits, *support = self.run_encoder(*self.inputs(indices, segments))
        return ragged(code, code_splits), ragged(*support) if support else indices

    def decode(self, code: tf.RaggedTensor, counts: tf.Tensor, segments: Segments) -> tf.RaggedTensor:
        return ragged(*self.run_decoder(code.values, code.row_splits, counts, segments.sizes, segments.seed, segments.step))

    def inputs(self, indices: tf.RaggedTensor, segments: Segments) -> tuple[tf.Tensor, ...]:
        """The inputs of the encoding op."""
        return indices.values, indices.row_splits, segments.sizes, segments.seed, segments.step


class SeededSupport(_OpIndexCodec):
    """No bytes at all: what a seeded sparsifier (RandomK) keeps is computed by the receivers. Chosen by DeepReduce itself."""

    codec_id = 0


@register_stage
class FixedWidth(_OpIndexCodec):
    """Writes each index in as many bits as the segment's size needs: the raw form of all index codecs."""

    codec_id = 1


@register_stage
class Bitmap(_OpIndexCodec):
    """Writes one bit for each element of the segment: the smallest plain form above about 1 / log2(size) kept."""

    codec_id = 2


@register_stage
class Rice(_OpIndexCodec):
    """Writes the gaps between kept indices in a Golomb-Rice code whose parameter is the best one for each segment.

    Within a few percent of the smallest size that any code reaches on indices without structure (Rice, "Some practical universal noiseless
    coding techniques", JPL 79-22, 1979).
    """

    codec_id = 3


@register_stage
class EliasFano(_OpIndexCodec):
    """Writes the high part of each index in unary and its low bits as they are: at most 2 + log2(size / count) bits per index.

    Half a bit more than Rice, and decoded in about half the time (Elias, "Efficient storage and retrieval by content and address of static
    files", Journal of the ACM 21, 1974; Fano, "On the number of bits required to implement an associative memory", MIT Project MAC, 1971).
    """

    codec_id = 4


@register_stage
class RunLength(_OpIndexCodec):
    """Writes the lengths of the runs of absent and kept elements: for gradients whose kept elements lie together.

    Run lengths (Golomb, "Run-length encodings", IEEE Transactions on Information Theory 12, 1966) in the gamma code of Elias ("Universal
    codeword sets and representations of the integers", IEEE Transactions on Information Theory 21, 1975).
    """

    codec_id = 5


@register_stage
class Huffman(_OpIndexCodec):
    """Writes each gap as its number of bits, in a Huffman code made for the segment, and those bits.

    Within 1 to 3 percent of the smallest size on indices without structure up to 10 percent kept, 13 percent above it at half; adapts to
    any distribution of gaps where Rice's single parameter does not (Huffman, "A method for the construction of minimum-redundancy codes",
    Proceedings of the IRE 40, 1952).
    """

    codec_id = 6


@register_stage
class DeltaHuffman(_OpIndexCodec):
    """Writes each gap as its number of bytes, in a Huffman code made for the segment, and those 1 to 4 bytes: the keys of SKCompress.

    Takes at least 8 bits per index, which Huffman and Rice do not. Jiang et al., "SketchML: Accelerating distributed machine learning with
    data sketches", SIGMOD 2018, section 3; "SKCompress: compressing sparse and nonuniform gradient in distributed machine learning", The
    VLDB Journal 29, 2020.
    """

    codec_id = 7


@register_stage
class BloomFilter(_OpIndexCodec):
    """Writes a Bloom filter of the kept indices; both sides ask it about every index, and make a support of those it accepts by a policy.

    Xu et al., "DeepReduce: A Sparse-tensor Communication Framework", NeurIPS 2021, section on Bloom-filter indices; Bloom, "Space/time
    trade-offs in hash coding with allowable errors", Communications of the ACM 13, 1970.

    For those who study the paper, and as a lossy sparsifier at high rates. To send indices exactly, Rice takes fewer bytes: p0's best rate
    costs 1.9 to 3.9 times the smallest possible, values of false positives included. A filter takes 14.4 bits for each index at a rate of
    0.001, 9.6 at 0.01, 4.8 at 0.1. There is no raw form; a warning says once where raw (index, value) pairs would be smaller.

    The hash functions change with each step, and false positives with them. Values are those at the support that is sent. DeepReduce codes
    the rows of `tf.IndexedSlices` by Rice instead, since all of them must arrive, and warns.

    Args:
        fpr: false positive rate, 1e-9 to 0.999: the share of the other indices that the filter accepts, on average over steps. Up to 12 %
            more between 0.7 and 0.9, where there is one hash function, and up to twice as much where all indices, fewer than about 1000,
            lie in one run: neighbours share words.
        policy: what is sent of the accepted indices, of which r are those that were given:
            `"p0"`: all. No error, and more values.
            `"p1"`: r at random.
            `"p2"`: r by conflict sets: indices with a bit of the filter to themselves, which are no false positives, then some drawn from
            the smallest sets that share a bit.
            `"leftmost"`, `"middle"`, `"rightmost"`: r in a row. Error feedback never sends the indices at the other end, about fpr of all.
            `"naive"`: the first r, with the values of the indices that were given: wrong after the first false positive. It is kept to
            show why the others exist, and refused with error feedback.
    """

    codec_id = 8
    lossless = False
    policies = ("naive", "p0", "p1", "p2", "leftmost", "middle", "rightmost")

    def __init__(self, fpr: float = 0.001, policy: str = "p2") -> None:
        if not is_number(fpr) or not 1e-9 <= fpr <= 0.999:
            raise ValueError(f"`fpr` must be a number in [1e-9, 0.999]. Received: fpr={fpr!r}")
        self.fpr = float(fpr)
        if policy not in self.policies:
            raise ValueError(f"`policy` must be one of {', '.join(self.policies)}. Received: policy={policy!r}")
        self.policy = policy

    @property
    def regathers(self) -> bool:
        return self.policy != "naive"

    def contraction(self) -> BloomFilter:
        if self.policy == "naive":
            raise ValueError(
                "`policy` must be another with error feedback, which values at wrong indices make diverge: use policy='p0', or "
                "error_feedback=False. Received: policy='naive'"
            )
        return self


@register_stage
class Adaptive(_OpIndexCodec):
    """Learns while it writes how many elements each row and column keeps: for gradients whose units or inputs differ in activity.

    A binary tree of indices in a range code (Martin, "Range encoding: an algorithm for removing redundancy from a digitised message", 1979)
    whose probabilities follow the last two dimensions of a shape; kernel positions share their rows and columns. Never longer than Rice:
    within one percent of the smallest size that any code reaches on indices without structure, 14 % shorter on the gradients of a
    ResNet-20 with error feedback, less than half as long on those of dense layers with idle units. 10 to 70 times as slow as Rice.
    """

    codec_id = 9

    def inputs(self, indices: tf.RaggedTensor, segments: Segments) -> tuple[tf.Tensor, ...]:
        known = [tf.get_static_value(shape) for shape in segments.shapes]
        products = tf.constant([-1 if shape is None else math.prod(shape.tolist()) for shape in known], tf.int64)
        dimensions = tf.constant([[1, 1] if shape is None else [1, 1, *shape][-2:] for shape in known], tf.int64, [len(known), 2])
        # Indices of `tf.IndexedSlices` are of rows alone, so their shape says nothing of them.
        return *super().inputs(indices, segments), tf.where((products == segments.sizes)[:, None], dimensions, 1)
