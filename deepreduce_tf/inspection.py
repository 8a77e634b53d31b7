"""What codecs would make of real gradients: bytes, errors and times. `python -m deepreduce_tf inspect` shows them.

Stages only: nothing here exchanges, or needs Horovod.
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable, Iterable, Sequence

import numpy as np
import tensorflow as tf

from deepreduce_tf.index_codecs import IndexCodec
from deepreduce_tf.sparsifiers import Sparsifier
from deepreduce_tf.stage import Stage, registered_stages, resolve_class
from deepreduce_tf.value_codecs import ValueCodec

# The settings that are tried of a stage. One that is not named here, an application's too, is tried as it is by default.
SETTINGS: dict[str, list[dict[str, object]]] = {
    "BloomFilter": [{"fpr": fpr, "policy": policy} for policy in ("p0", "p2") for fpr in (0.1, 0.01, 0.001)],
    "Deflate": [{}, {"value": "qsgd"}, {"value": "log_quantizer"}],
    "LogQuantizer": [{"bits": 4}, {"bits": 8}],
    "QSGD": [{"bits": 2}, {"bits": 4}, {"bits": 8}],
    "SketchML": [{"bits": 2}, {"bits": 4}, {"bits": 8}],
    "ThreeLC": [{"multiplier": 1.0}, {"multiplier": 1.75}],
}

# (largest relative error, name), in order.
ERROR_CLASSES = ((0.0, "lossless"), (0.01, "at most 1 %"), (0.05, "at most 5 %"), (0.2, "at most 20 %"), (math.inf, "more than 20 %"))


class CodecError(RuntimeError):
    """A codec that does not do what its kind promises."""


def settings(kind: type[Stage], names: Iterable[str] = ()) -> list[Stage | CodecError]:
    """The stages to try, each registered one in its settings; those that cannot be made without arguments as errors.

    Args:
        kind: `IndexCodec` or `ValueCodec`.
        names: the stages to try; all when empty.

    Raises:
        ValueError: for a name that is not one of a stage of this kind.
    """
    argument = {IndexCodec: "index", ValueCodec: "value"}[kind]
    named = [resolve_class(argument, name, kind) for name in names]
    stages = []
    for stage in dict.fromkeys(named or registered_stages(kind)):
        for arguments in SETTINGS.get(stage.__name__, [{}]):
            try:
                stages.append(stage(**arguments))
            except (TypeError, ValueError) as error:
                stages.append(CodecError(f"{stage.__name__} cannot be made: {error}"))
    return stages


def label(stage: Stage) -> str:
    """A stage with those of its arguments that are not the default, or that `SETTINGS` varies."""
    varied = {name for arguments in SETTINGS.get(type(stage).__name__, ()) for name in arguments}
    try:
        default = type(stage)().get_config()
    except (TypeError, ValueError):  # an application's, with arguments that have no default
        default = {}
    shown = [name for name, value in stage.get_config().items() if name in varied or name not in default or value != default[name]]
    texts = [f"{name}={_text(getattr(stage, name))}" for name in shown]
    return f"{type(stage).__name__}({', '.join(texts)})".removesuffix("()")


def _text(value: object) -> str:
    return label(value) if isinstance(value, Stage) else f"{value:g}" if isinstance(value, float) else str(value)


class Bucket:
    """Gradients side by side, and what a sparsifier keeps of them.

    Attributes:
        names, shapes, sizes: of the gradients.
        flat: float32[elements], all gradients one after the other.
        indices, splits, values: what the sparsifier keeps, as stages take it.
        places: int64[kept], `indices` as places of `flat`.
        kept: how many elements that are.
        bound_bits: log2 C(size, count), added over the gradients: the fewest bits that tell any `count` of `size` places apart.
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
        self.indices, self.values, self.splits = selection
        self.places = self.places_of(self.indices, self.splits)
        self.kept = len(self.places)
        self.bound_bits = sum(map(_log2_binomial, self.sizes.numpy().tolist(), np.diff(self.splits).tolist()))

    def places_of(self, indices: tf.Tensor, splits: tf.Tensor) -> np.ndarray:
        """Places of each gradient as places of `flat`."""
        return np.repeat(self.starts, np.diff(splits)) + indices.numpy()


@dataclasses.dataclass(frozen=True)
class IndexFigures:
    """An index codec on a bucket.

    Attributes:
        lengths: int64[gradients], bytes of each code.
        places: int64[sent], the support that receivers decode, as places of the bucket's `flat`.
        values, splits: what a value codec gets for these places.
        missed: sum of the squares of what the sparsifier keeps and that support lacks.
    """

    codec: IndexCodec
    lengths: np.ndarray
    places: np.ndarray
    values: tf.Tensor
    splits: tf.Tensor
    missed: float
    encode_seconds: float
    decode_seconds: float


@dataclasses.dataclass(frozen=True)
class ValueFigures:
    """A value codec on some values: bytes of each code, what receivers decode, and times."""

    codec: ValueCodec
    lengths: np.ndarray
    decoded: np.ndarray
    encode_seconds: float
    decode_seconds: float


@dataclasses.dataclass(frozen=True)
class PairFigures:
    """An index codec and a value codec on a bucket.

    Attributes:
        index_bytes, value_bytes: of the codes of all gradients, without the frame around them.
        bits_per_index, bits_per_value: the same for each element that the sparsifier keeps.
        sent: elements that receivers get; another number than kept only where the index codec is not lossless.
        relative_error: norm of (sent - gradient) over the places that are kept or sent, by the norm of what is kept.
        energy_kept: 1 - |sent - gradient|^2 / |gradient|^2 over all places.
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
        """Place in `ERROR_CLASSES`."""
        return next((i for i, (most, _) in enumerate(ERROR_CLASSES) if self.relative_error <= most), len(ERROR_CLASSES) - 1)


def measure_index(codec: IndexCodec, bucket: Bucket) -> IndexFigures:
    """Encodes and decodes what is kept of a bucket.

    Raises:
        CodecError: for a codec whose decoded support is not the one it promised.
    """
    scalars = (bucket.zero, bucket.zero)
    (code, code_splits, indices, splits), encode_seconds = timed(
        lambda: codec.encode(bucket.indices, bucket.splits, bucket.sizes, bucket.shapes, *scalars)
    )
    counts = splits[1:] - splits[:-1]
    (decoded, decoded_splits), decode_seconds = timed(
        lambda: codec.decode(code, code_splits, counts, bucket.sizes, bucket.shapes, *scalars)
    )
    promises = [(indices, splits), (bucket.indices, bucket.splits)] if codec.lossless else [(indices, splits)]
    if not all(np.array_equal(decoded, i) and np.array_equal(decoded_splits, s) for i, s in promises):
        raise CodecError(f"{label(codec)} decodes to another support than its `encode` returned or, if lossless, was given")
    places = bucket.places_of(indices, splits)
    # The naive policy of BloomFilter sends what was kept, for other places.
    values = tf.constant(bucket.flat[places]) if codec.regathers else bucket.values
    missed = np.setdiff1d(bucket.places, places, assume_unique=True)
    return IndexFigures(codec, np.diff(code_splits), places, values, splits, _energy(bucket.flat[missed]), encode_seconds, decode_seconds)


def measure_value(codec: ValueCodec, values: tf.Tensor, splits: tf.Tensor, error_feedback: bool = True) -> ValueFigures:
    """Encodes and decodes values, float32[total] with the gradients' `splits`.

    Args:
        codec: the codec.
        values: float32[total].
        splits: int64[gradients + 1].
        error_feedback: whether to encode as with error feedback, DeepReduce's default, if the codec can.

    Raises:
        CodecError: for a codec that decodes to other values than it promised.
    """
    zero, counts = tf.zeros([], tf.int64), splits[1:] - splits[:-1]
    encoder = _contraction(codec) if error_feedback else codec
    (code, code_splits, promised), encode_seconds = timed(lambda: encoder.encode(values, splits, zero, zero))
    decoded, decode_seconds = timed(lambda: codec.decode(code, code_splits, counts))
    if not np.array_equal(decoded, promised, equal_nan=True):
        raise CodecError(f"{label(codec)} decodes to other values than its `encode` returned")
    return ValueFigures(codec, np.diff(code_splits), decoded.numpy(), encode_seconds, decode_seconds)


def join(index: IndexFigures, value: ValueFigures, bucket: Bucket) -> PairFigures:
    """The figures of a pair, from those of an index codec and of a value codec on the values at its support."""
    wanted = bucket.flat[index.places]
    error = _energy(value.decoded.astype(np.float64) - wanted)
    index_bytes, value_bytes = int(index.lengths.sum()), int(value.lengths.sum())
    kept = max(1, bucket.kept)
    return PairFigures(
        index=index.codec,
        value=value.codec,
        index_bytes=index_bytes,
        value_bytes=value_bytes,
        bits_per_index=8 * index_bytes / kept,
        bits_per_value=8 * value_bytes / kept,
        sent=len(wanted),
        relative_error=math.sqrt(_share(error + index.missed, _energy(bucket.values.numpy()))),
        energy_kept=1 - _share(_energy(bucket.flat) - _energy(wanted) + error, _energy(bucket.flat)),
        encode_seconds=index.encode_seconds + value.encode_seconds,
        decode_seconds=index.decode_seconds + value.decode_seconds,
    )


def measure_pairs(
    bucket: Bucket,
    indices: Sequence[IndexCodec],
    values: Sequence[ValueCodec],
    progress: Callable[[str], None] = lambda text: None,
) -> tuple[list[PairFigures], list[str]]:
    """All pairs of index and value codecs, and what went wrong with those that are missing.

    A value codec sees nothing of a lossless index codec, so each is measured once for all of these, and again on the support of each
    other one.

    Args:
        bucket: the gradients.
        indices, values: the codecs.
        progress: called with the name of a codec or pair before it is measured; `len(indices) + (1 + lossy) * len(values)` times at most.
    """
    pairs, failures, shared = [], [], {}

    def attempt(what: str, measure: Callable):
        progress(what)
        try:
            return measure()
        except Exception as error:  # a codec may be anybody's, and fail in any way; the others go on
            failures.append(f"{what}: {' '.join(str(error).split())[:300]}")
            return None

    for codec in sorted(indices, key=lambda codec: not codec.lossless):
        index = attempt(label(codec), lambda codec=codec: measure_index(codec, bucket))
        if index is None:
            continue
        measured = shared if codec.lossless else {}
        for i, value in enumerate(values):
            if i in shared and shared[i] is None:  # it failed once, and would again
                continue
            what = label(value) if codec.lossless else f"{label(codec)}, {label(value)}"
            if i not in measured:
                measured[i] = attempt(what, lambda value=value, index=index: measure_value(value, index.values, index.splits))
            if measured[i] is not None:
                pairs.append(join(index, measured[i], bucket))
    return pairs, failures


def pareto_front(pairs: Sequence[PairFigures]) -> list[PairFigures]:
    """The pairs that no other one beats in bytes without a larger error, by bytes."""
    front, least = [], math.inf
    for pair in sorted(pairs, key=lambda pair: (pair.bytes, pair.relative_error)):
        if pair.relative_error < least:
            front.append(pair)
            least = pair.relative_error
    return front


def timed(call: Callable, most_runs: int = 5, enough_seconds: float = 0.1) -> tuple[object, float]:
    """What an eager call returns, and the seconds of the fastest of some runs: fewer runs where one takes long."""
    seconds, started = [], time.perf_counter()
    while len(seconds) < 2 or (len(seconds) < most_runs and time.perf_counter() - started < enough_seconds):
        start = time.perf_counter()
        result = call()
        seconds.append(time.perf_counter() - start)
        if seconds[0] > 10 * enough_seconds:
            break
    return result, min(seconds)


def _contraction(codec: ValueCodec) -> ValueCodec:
    try:
        return codec.contraction()
    except ValueError:  # there is none: DeepReduce would ask for error_feedback=False
        return codec


def _energy(values: np.ndarray) -> float:
    values = values.astype(np.float64)
    return float(values @ values)


def _share(part: float, whole: float) -> float:
    part = max(0.0, part)  # a difference of sums may round below zero
    return part / whole if whole else math.inf if part else 0.0


def _log2_binomial(size: int, count: int) -> float:
    return (math.lgamma(size + 1) - math.lgamma(count + 1) - math.lgamma(size - count + 1)) / math.log(2)
