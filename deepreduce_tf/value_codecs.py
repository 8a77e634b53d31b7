"""Value codecs: how the kept values of a bucket become bytes. The bytes are defined in docs/format/value_codes.md."""

from __future__ import annotations

import copy

import numpy as np
import tensorflow as tf

from deepreduce_tf import ops
from deepreduce_tf.codec import APPLICATION_CODEC, Codec, OpCodec, contraction_of
from deepreduce_tf.segments import ragged
from deepreduce_tf.stage import check_integer, is_number, register_stage, resolve_stage


class ValueCodec(Codec):
    """Codes the values of each segment."""

    def encode(self, values: tf.RaggedTensor, seed: tf.Tensor, step: tf.Tensor) -> tuple[tf.RaggedTensor, tf.RaggedTensor]:
        """Codes a bucket.

        Args:
            values: float32[segments, (count)]. Values that are not finite must reach the receivers as values that are not finite.
            seed: scalar int64, different on each rank.
            step: scalar int64.

        Returns:
            The code, uint8[segments, (bytes)], and exactly the values that `decode` will give, like `values`.
        """
        raise NotImplementedError(f"{type(self).__name__} must implement `encode`")

    def decode(self, code: tf.RaggedTensor, counts: tf.Tensor) -> tf.RaggedTensor:
        """Inverse of `encode`.

        Args:
            code: uint8[segments, (bytes)].
            counts: int64[segments], values of each segment.

        Returns:
            float32[segments, (count)].
        """
        raise NotImplementedError(f"{type(self).__name__} must implement `decode`")

    def __call__(self, values: tf.Tensor, seed: int = 0, step: int = 0) -> tf.Tensor:
        """The values that receivers see; float32, of the same shape."""
        values = tf.convert_to_tensor(values, tf.float32)
        flat = tf.reshape(values, [-1])
        rows = ragged(flat, tf.stack([0, tf.size(flat, tf.int64)]))
        code, _ = self.encode(rows, tf.constant(seed, tf.int64), tf.constant(step, tf.int64))
        return tf.reshape(self.decode(code, rows.row_lengths()).values, tf.shape(values))


class _OpValueCodec(OpCodec, ValueCodec):
    """A codec whose two directions are C++ ops."""

    def encode(self, values: tf.RaggedTensor, seed: tf.Tensor, step: tf.Tensor) -> tuple[tf.RaggedTensor, tf.RaggedTensor]:
        code, code_splits, decoded = self.run_encoder(values.values, values.row_splits, seed, step)
        return ragged(code, code_splits), values.with_values(decoded)

    def decode(self, code: tf.RaggedTensor, counts: tf.Tensor) -> tf.RaggedTensor:
        values = self.run_decoder(code.values, code.row_splits, counts)
        return tf.RaggedTensor.from_row_lengths(values, counts, validate=False)


@register_stage
class Float32(_OpValueCodec):
    """Writes the values as they are: the raw form of all value codecs."""

    codec_id = 1


@register_stage
class Float16(_OpValueCodec):
    """Rounds to IEEE half precision, to nearest even. A segment with a value above 65504 is sent raw."""

    codec_id = 2


@register_stage
class BFloat16(_OpValueCodec):
    """Rounds to bfloat16, to nearest even: float32's range with 8 bits of precision."""

    codec_id = 3


class _RandomRounding(_OpValueCodec):
    """A codec whose rounding noise may exceed the values. Under error feedback its op is told so, and shrinks the error."""

    shrinks: bool = False

    def contraction(self) -> _RandomRounding:
        codec = copy.copy(self)
        codec.shrinks = True
        return codec

    def attributes(self) -> dict[str, object]:
        return super().attributes() | {"contraction": self.shrinks}


@register_stage
class QSGD(_RandomRounding):
    """Rounds each value, at random and without bias, to one of `2^(bits-1) - 1` even levels of a scale per 512 values.

    Alistarh et al., "QSGD: Communication-efficient SGD via gradient quantization and encoding", NeurIPS 2017, section 3.

    Args:
        bits: bits per value, 2 to 8, sign included.
        norm: the scale: `"max"`, the largest magnitude, or `"l2"`, the paper's, whose error is several times larger at the same size.
            At few bits rounding noise may exceed the values, which error feedback would not survive. Under it, `"max"` with 4 bits or
            fewer rounds to nearest, and what `"l2"` sends with 5 bits or fewer is scaled by 1 / (1 + w), w = min(512 / s^2, sqrt(512) / s)
            with s levels.
    """

    codec_id = 4

    def __init__(self, bits: int = 8, norm: str = "max") -> None:
        self.bits = check_integer("bits", bits, 2, 8)
        if norm not in ("max", "l2"):
            raise ValueError(f"`norm` must be 'max' or 'l2'. Received: norm={norm!r}")
        self.norm = norm


@register_stage
class LogQuantizer(_OpValueCodec):
    """Writes sign and logarithmic bin of each magnitude, between the smallest and largest of the segment; decodes to bin means or centres.

    Good for the values that TopK keeps, which are bounded away from zero.

    Args:
        bits: bits per value, 2 to 8, sign included.
    """

    codec_id = 5

    def __init__(self, bits: int = 8) -> None:
        self.bits = check_integer("bits", bits, 2, 8)


@register_stage
class Deflate(_OpValueCodec):
    """Compresses what another value codec writes, without loss, by zlib-ng.

    Numbers of whole bytes (float32, float16, bfloat16) are shuffled first: their first bytes together, then their second ones, and so on,
    which brings equal exponents together.

    Args:
        value: a `ValueCodec` other than Deflate, or the name of one. What an application's codec writes is deflated up to 1024 bytes and 16
            for each value, and sent as it is beyond.
        level: effort, 1 (fast) to 9 (small).
        shuffle: whether to shuffle bytes first.
    """

    codec_id = 6

    def __init__(self, value: ValueCodec | str = "float32", level: int = 6, shuffle: bool = True) -> None:
        self.value = resolve_stage("value", value, ValueCodec)
        if isinstance(self.value, Deflate):
            raise ValueError(f"`value` must be a codec other than Deflate, which would gain nothing. Received: value={value!r}")
        self.level = check_integer("level", level, 1, 9)
        if not isinstance(shuffle, bool):
            raise ValueError(f"`shuffle` must be True or False. Received: shuffle={shuffle!r}")
        self.shuffle = shuffle
        if self.value.codec_id == APPLICATION_CODEC:
            self.codec_id = APPLICATION_CODEC  # only its own methods decode it

    def contraction(self) -> Deflate:
        codec = copy.copy(self)
        codec.value = contraction_of(self.value)
        return codec

    def attributes(self) -> dict[str, object]:
        return {"inner": self.value.codec_id, "level": self.level, "shuffle": self.shuffle}

    def encode(self, values: tf.RaggedTensor, seed: tf.Tensor, step: tf.Tensor) -> tuple[tf.RaggedTensor, tf.RaggedTensor]:
        code, decoded = self.value.encode(values, seed, step)
        inputs = (values.values, decoded.values, values.row_splits, code.values, code.row_splits)
        deflated, deflated_splits, decoded = self.run_encoder(*inputs)
        return ragged(deflated, deflated_splits), values.with_values(decoded)

    def decode(self, code: tf.RaggedTensor, counts: tf.Tensor) -> tf.RaggedTensor:
        if self.codec_id != APPLICATION_CODEC:
            return super().decode(code, counts)
        return self.value.decode(ragged(*ops.inflate(code.values, code.row_splits, counts)), counts)


@register_stage
class PolyFit(_OpValueCodec):
    """Sorts the values, positive and negative ones apart, and sends polynomials through the two curves, and the position of each value.

    Xu et al., "DeepReduce: A sparse-tensor communication framework for federated deep learning", NeurIPS 2021, curve fitting of values.
    A position takes ceil(log2 n) bits, so this pays for gradients of which some thousands of values are kept, not millions. A curve is cut
    at the point furthest from the chord of a piece, again and again; a piece of at most `degree` values is sent as it is. Least squares
    are projections, and what rounding would spoil is sent raw: the error stays below the values, as error feedback needs.

    Args:
        degree: of the polynomials, 1 to 15.
        pieces: how many for the positive and for the negative values each, 1 to 64. By default ceil(sqrt(2 M / error)), where M is the
            largest distance of a curve from the chord between its end points and error a tenth of its root mean square. Always few enough
            that there are four values or more for each coefficient.
    """

    codec_id = 7

    def __init__(self, degree: int = 5, pieces: int | None = None) -> None:
        self.degree = check_integer("degree", degree, 1, 15)
        self.pieces = None if pieces is None else check_integer("pieces", pieces, 1, 64)

    def attributes(self) -> dict[str, object]:
        return {"degree": self.degree, "pieces": self.pieces or 0}


@register_stage
class DoubleExpFit(_OpValueCodec):
    """Sorts the values as `PolyFit` does, and sends one curve a e^(b x) + c e^(d x) for each sign, and the position of each value.

    Xu et al., "DeepReduce: A sparse-tensor communication framework for federated deep learning", NeurIPS 2021, curve fitting of values:
    four numbers for all positive values and four for all negative ones. The curve is found by an integral equation. Where that has no
    solution (a constant, oscillation) or the curve is worse than one polynomial of degree 5 or errs by half of the values' norm (outliers),
    the values of that sign are coded as by `PolyFit()`. As there, the error stays below the values.
    """

    codec_id = 8


@register_stage
class SketchML(_OpValueCodec):
    """Sorts magnitudes into `2^bits` buckets, writes bucket and sign of each value in a Huffman code, and decodes to the bucket's mean.

    The buckets end at quantiles that decrease geometrically, as the magnitudes of gradients do, then move to the nearest mean twice: where
    buckets of equal counts gain nothing from a Huffman code, these err half as much or less at equal bytes. With error feedback errors
    shrink: over a bucket of n values the squared errors sum to the squared values less n times the squared mean, but for a factor of
    1 - 2^-16 from rounding means to bfloat16. (Jiang et al., "SketchML: Accelerating distributed machine learning with data sketches",
    SIGMOD 2018, section 3; "SKCompress: compressing sparse and nonuniform gradient in distributed machine learning", The VLDB Journal 29,
    2020.)

    Args:
        bits: log2 of the number of buckets, 2 to 8. A segment has no more than 4, or one for 8 values, so that the means do not outweigh
            the values. Bucket and sign take less than `bits + 1` bits: with the means 2.4 at `bits=2` and 4.4 at `bits=4` in a segment of
            369 values that TopK kept.
    """

    codec_id = 9

    def __init__(self, bits: int = 4) -> None:
        self.bits = check_integer("bits", bits, 2, 8)


@register_stage
class TernGrad(_RandomRounding):
    """Rounds each value, at random and without bias, to 0 or to plus or minus the largest magnitude of the segment: 1.6 bits per value.

    Wen et al., "TernGrad: Ternary gradients to reduce communication in distributed deep learning", NeurIPS 2017, section 3. The scale is
    that of a gradient, as in its layer-wise scaling; its gradient clipping is left to the optimizer.

    The noise exceeds the values: its square is w |v|^2, w = max |v|_1 / |v|_2^2 - 1. Error feedback would not survive that. Under it,
    the scale is sent times 1 / (1 + w), which leaves an error of w / (1 + w) of the values' square.
    """

    codec_id = 10


@register_stage
class Natural(_OpValueCodec):
    """Rounds each magnitude, at random and without bias, to a power of two: the one below it or the one above.

    Horvath et al., "Natural compression for distributed deep learning", 2019 (MSML 2022), section 2. Bits per value: the sign, and as many
    as tell the powers of a segment apart, often 4 or 5 in all. The square of the noise is at most 1/8 of the values' square
    (1/4 of those above 2^127, which become 2^127), so error feedback needs no more. Magnitudes below 2^-126, or 2^-126 of the segment's
    largest, become 0.
    """

    codec_id = 11


@register_stage
class ThreeLC(_OpValueCodec):
    """Rounds each value to nearest: 0, or plus or minus a scale; five to a byte, and runs of zeros to one byte for up to 70.

    Lim, Andersen, Kaminsky, "3LC: Lightweight and effective traffic compression for distributed machine learning", MLSys 2019, section 3.
    It is made for dense gradients and relies on error feedback: `DeepReduce(TopK(1.0), value=ThreeLC())`.

    What is rounded to 0 errs by itself, what is rounded to the scale by less than itself, since it is more than half of the scale: so
    error feedback needs no more.

    Args:
        multiplier: the scale is this times the largest magnitude of the segment; from 1 and below 2. The larger it is, the more values
            become 0, the smaller the code, and the larger the residual: of normal gradients twice their norm at 1, 5 times at 1.5, 12 times
            at 1.75. Near 2 hardly anything is sent.
    """

    codec_id = 12

    def __init__(self, multiplier: float = 1.0) -> None:
        if not is_number(multiplier) or not 1 <= np.float32(multiplier) < 2:
            raise ValueError(f"`multiplier` must be a number in [1, 2). Received: multiplier={multiplier!r}")
        self.multiplier = float(multiplier) if multiplier >= 1 else 1.0  # float32 rounds up what is a little less
