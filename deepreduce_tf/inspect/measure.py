"""Bytes, errors and times of codecs on saved gradients."""

from __future__ import annotations

import dataclasses
import functools
import math
import time
from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np
import tensorflow as tf

from deepreduce_tf.index_codecs import IndexCodec
from deepreduce_tf.inspect.settings import CodecError, label
from deepreduce_tf.segments import Segments
from deepreduce_tf.sparsifiers import Sparsifier
from deepreduce_tf.value_codecs import ValueCodec

Result = TypeVar("Result")

# (largest relative error, name), in order.
ERROR_CLASSES = ((0.0, "lossless"), (0.01, "at most 1 %"), (0.05, "at most 5 %"), (0.2, "at most 20 %"), (math.inf, "more than 20 %"))


class Sample:
    """Gradients side by side, and what a sparsifier keeps of them.

    Attributes:
        names, shapes, sizes: of the gradients.
        flat: float32[elements], all gradients one after the other.
        indices, values: what the sparsifier keeps, a row for each gradient.
        positions: int64[kept], `indices` as positions in `flat`.
        kept: how many elements that are.
        bound_bits: log2 C(size, count), added over the gradients: the fewest bits that tell all supports of `count` elements apart.
        select_seconds: what the sparsifier takes.
    """

    def __init__(self, gradients: dict[str, np.ndarray], sparsifier: Sparsifier):
        self.names = list(gradients)
        tensors = [tf.convert_to_tensor(gradient, tf.float32) for gradient in gradients.values()]
        self.flat = np.concatenate([np.ravel(tensor) for tensor in tensors])
        self.shapes = [tf.shape(tensor) for tensor in tensors]
        self.sizes = tf.stack([tf.size(tensor, tf.int64) for tensor in tensors])
        self.zero = tf.zeros([], tf.int64)  # seed and step
        self.starts = np.cumsum(self.sizes) - self.sizes
        selection, self.select_seconds = timed(lambda: sparsifier.select(tensors, [], self.zero, self.zero))
        self.indices, self.values = selection
        self.positions = self.positions_of(self.indices)
        self.kept = len(self.positions)
        self.bound_bits = sum(map(_log2_binomial, self.sizes.numpy().tolist(), np.diff(self.indices.row_splits).tolist()))

    def positions_of(self, indices: tf.RaggedTensor) -> np.ndarray:
        """Indices into each gradient as positions in `flat`."""
        return np.repeat(self.starts, np.diff(indices.row_splits)) + indices.values.numpy()


@dataclasses.dataclass(frozen=True)
class IndexMetrics:
    """An index codec on what is kept.

    Attributes:
        lengths: int64[gradients], bytes of each code.
        positions: int64[sent], the support that receivers decode, as positions in the sample's `flat`.
        values: what a value codec gets for that support, float32, a row for each gradient.
        missed: sum of the squares of what the sparsifier keeps and that support lacks.
    """

    codec: IndexCodec
    lengths: np.ndarray
    positions: np.ndarray
    values: tf.RaggedTensor
    missed: float
    encode_seconds: float
    decode_seconds: float


@dataclasses.dataclass(frozen=True)
class ValueMetrics:
    """A value codec on some values: bytes of each code, what receivers decode, and times."""

    codec: ValueCodec
    lengths: np.ndarray
    decoded: np.ndarray
    encode_seconds: float
    decode_seconds: float


@dataclasses.dataclass(frozen=True)
class PairMetrics:
    """An index codec and a value codec on what is kept.

    Attributes:
        index_bytes, value_bytes: of the codes of all gradients, without the frame around them.
        bits_per_index, bits_per_value: the same for each element that the sparsifier keeps.
        sent: elements that receivers get; another number than kept only where the index codec is not lossless.
        relative_error: norm of (sent - gradient) over the elements that are kept or sent, by the norm of what is kept.
        energy_kept: 1 - |sent - gradient|^2 / |gradient|^2 over all elements.
        encode_seconds, decode_seconds: of both codecs.
    """

    index: IndexCodec
    value: ValueCodec
    index_bytes: int
    value_bytes: int
    bits_per_index: float
    bits_per_value: float
    sent: int
    relative_error: float
    energy_kept: float
    encode_seconds: float
    decode_seconds: float

    @property
    def bytes(self) -> int:
        return self.index_bytes + self.value_bytes

    @property
    def error_class(self) -> int:
        """Position in `ERROR_CLASSES`."""
        return next((i for i, (limit, _) in enumerate(ERROR_CLASSES) if self.relative_error <= limit), len(ERROR_CLASSES) - 1)


def measure_index(codec: IndexCodec, sample: Sample) -> IndexMetrics:
    """Encodes and decodes what is kept of a sample.

    Raises:
        CodecError: for a codec whose decoded support is not the one it promised.
    """
    segments = Segments(sample.sizes, sample.shapes, sample.zero, sample.zero)
    (code, support), encode_seconds = timed(lambda: codec.encode(sample.indices, segments))
    counts = support.row_lengths()
    decoded, decode_seconds = timed(lambda: codec.decode(code, counts, segments))
    promises = [support, sample.indices] if codec.lossless else [support]
    if not all(_same_rows(decoded, promise) for promise in promises):
        raise CodecError(f"{label(codec)} decodes to another support than its `encode` returned or, if lossless, was given")
    positions = sample.positions_of(support)
    # The naive policy of BloomFilter sends the values that were kept, for other elements.
    values = tf.constant(sample.flat[positions]) if codec.regathers else sample.values.values
    missed = np.setdiff1d(sample.positions, positions, assume_unique=True)
    return IndexMetrics(
        codec=codec,
        lengths=np.diff(code.row_splits),
        positions=positions,
        values=support.with_values(values),
        missed=_energy(sample.flat[missed]),
        encode_seconds=encode_seconds,
        decode_seconds=decode_seconds,
    )


def measure_value(codec: ValueCodec, values: tf.RaggedTensor, error_feedback: bool = True) -> ValueMetrics:
    """Encodes and decodes values.

    Args:
        codec: the codec.
        values: float32, a row for each gradient.
        error_feedback: whether to encode as with error feedback, DeepReduce's default, if the codec can.

    Raises:
        CodecError: for a codec that decodes to other values than it promised.
    """
    zero, counts = tf.zeros([], tf.int64), values.row_lengths()
    encoder = _contraction(codec) if error_feedback else codec
    (code, promised), encode_seconds = timed(lambda: encoder.encode(values, zero, zero))
    decoded, decode_seconds = timed(lambda: codec.decode(code, counts))
    if decoded.values.numpy().tobytes() != promised.values.numpy().tobytes():  # to the bit, also of zeros' signs and of NaN
        raise CodecError(f"{label(codec)} decodes to other values than its `encode` returned")
    return ValueMetrics(codec, np.diff(code.row_splits), decoded.values.numpy(), encode_seconds, decode_seconds)


def join(index: IndexMetrics, value: ValueMetrics, sample: Sample) -> PairMetrics:
    """The metrics of a pair, from those of an index codec and of a value codec on the values at its support."""
    wanted = sample.flat[index.positions]
    error = _energy(value.decoded.astype(np.float64) - wanted)
    index_bytes, value_bytes = int(index.lengths.sum()), int(value.lengths.sum())
    kept = max(1, sample.kept)
    return PairMetrics(
        index=index.codec,
        value=value.codec,
        index_bytes=index_bytes,
        value_bytes=value_bytes,
        bits_per_index=8 * index_bytes / kept,
        bits_per_value=8 * value_bytes / kept,
        sent=len(wanted),
        relative_error=math.sqrt(_share(error + index.missed, _energy(sample.values.values.numpy()))),
        energy_kept=1 - _share(_energy(sample.flat) - _energy(wanted) + error, _energy(sample.flat)),
        encode_seconds=index.encode_seconds + value.encode_seconds,
        decode_seconds=index.decode_seconds + value.decode_seconds,
    )


def count_steps(indices: Sequence[IndexCodec], values: Sequence[ValueCodec]) -> int:
    """How many codecs and pairs `measure_pairs` measures, if none fails."""
    return len(indices) + (1 + sum(not codec.lossless for codec in indices)) * len(values)


def measure_pairs(
    sample: Sample,
    indices: Sequence[IndexCodec],
    values: Sequence[ValueCodec],
    progress: Callable[[str], None] = lambda text: None,
) -> tuple[list[PairMetrics], list[str]]:
    """All pairs of index and value codecs, and what went wrong with those that are missing.

    A value codec sees nothing of a lossless index codec, so each is measured once for all of these, and again on the support of each
    other one.

    Args:
        sample: the gradients.
        indices, values: the codecs.
        progress: called with the name of a codec or pair before it is measured; `count_steps` times at most.
    """
    pairs: list[PairMetrics] = []
    failures: list[str] = []
    shared: dict[int, ValueMetrics | None] = {}

    def attempt(what: str, measure: Callable[[], Result]) -> Result | None:
        progress(what)
        try:
            return measure()
        except Exception as error:  # a codec may be anybody's, and fail in any way; the others go on
            failures.append(f"{what}: {' '.join(str(error).split())[:300]}")
            return None

    for codec in sorted(indices, key=lambda codec: not codec.lossless):
        index = attempt(label(codec), functools.partial(measure_index, codec, sample))
        if index is None:
            continue
        measured: dict[int, ValueMetrics | None] = shared if codec.lossless else {}
        for i, value in enumerate(values):
            if i in shared and shared[i] is None:  # it failed once, and would again
                continue
            what = label(value) if codec.lossless else f"{label(codec)}, {label(value)}"
            if i not in measured:
                measured[i] = attempt(what, functools.partial(measure_value, value, index.values))
            metrics = measured[i]
            if metrics is not None:
                pairs.append(join(index, metrics, sample))
    return pairs, failures


def timed(call: Callable[[], Result], max_runs: int = 5, enough_seconds: float = 0.1) -> tuple[Result, float]:
    """What an eager call returns, and the seconds of the fastest of some runs: fewer runs where one takes long."""
    seconds: list[float] = []
    started = time.perf_counter()
    while len(seconds) < 2 or (len(seconds) < max_runs and time.perf_counter() - started < enough_seconds):
        start = time.perf_counter()
        result = call()
        seconds.append(time.perf_counter() - start)
        if seconds[0] > 10 * enough_seconds:
            break
    return result, min(seconds)


def _contraction(codec: ValueCodec) -> ValueCodec:
    try:
        contraction = codec.contraction()
    except ValueError:  # there is none: DeepReduce would ask for error_feedback=False
        return codec
    if type(contraction) is not type(codec):
        raise CodecError(f"{label(codec)} has a contraction of another class: {label(contraction)}")
    return contraction


def _same_rows(some: tf.RaggedTensor, others: tf.RaggedTensor) -> bool:
    return np.array_equal(some.values, others.values) and np.array_equal(some.row_splits, others.row_splits)


def _energy(values: np.ndarray) -> float:
    values = values.astype(np.float64)
    return float(values @ values)


def _share(part: float, whole: float) -> float:
    part = max(0.0, part)  # a difference of sums may round below zero
    return part / whole if whole else math.inf if part else 0.0


def _log2_binomial(size: int, count: int) -> float:
    return (math.lgamma(size + 1) - math.lgamma(count + 1) - math.lgamma(size - count + 1)) / math.log(2)
