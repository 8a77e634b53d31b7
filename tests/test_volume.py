"""Bytes against the volume targets: all that is sent is counted, headers, tables and dense small gradients too."""

import math
from functools import partial

import numpy as np
import pytest
from resnet50_shapes import SHAPES
from stages import bucket_of

from deepreduce_tf import (
    QSGD,
    Bitmap,
    DeepReduce,
    Deflate,
    EliasFano,
    FixedWidth,
    Float32,
    LogQuantizer,
    RandomK,
    Rice,
    RunLength,
    TernGrad,
    ThreeLC,
    TopK,
    ops,
)

SIZES = [math.prod(shape) for shape in SHAPES]
HEADER, ROW, PADDING = 32, 25, 7  # bytes at most


def normal(draw, size):
    """All values of one scale."""
    return draw.standard_normal(size, dtype="float32")


def scale_mixture(draw, size):
    """Heavy tails: normal values whose scales are log-normal, with a kurtosis of 3 e^4."""
    return draw.standard_normal(size, dtype="float32") * np.exp(draw.standard_normal(size, dtype="float32"))


def student_t(draw, size):
    """Heavier tails still: Student's t with 3 degrees of freedom."""
    return draw.standard_t(3, size).astype("float32")


def test_the_list_of_shapes_is_resnet_50():
    assert len(SHAPES) == 161 and sum(SIZES) == 25_557_032
    assert (SHAPES[0], SHAPES[-2], SHAPES[-1]) == ((7, 7, 3, 64), (2048, 1000), (1000,))


def exchanged(compression, gradients):
    """Bytes sent of a list of gradients, and (kept, decoded) values of those that are large enough to be compressed."""
    large = [g for g in gradients if g.size >= compression.min_size]
    small_bytes = sum(4 * g.size for g in gradients if g.size < compression.min_size)
    bucket = bucket_of(large)
    payload = compression.encode(bucket).payload
    decoded = [np.asarray(each) for each in compression.decode(payload, bucket, 1.0)]
    return 8 * payload.shape[0] + small_bytes, large, decoded


def errors_of(gradients, decoded):
    """Of what is sent: the error's norm by the values' norm, and the median and the largest relative error value by value."""
    kept = [d != 0 for d in decoded]
    values = np.concatenate([g[k] for g, k in zip(gradients, kept, strict=True)])
    differences = np.concatenate([(d - g)[k] for g, d, k in zip(gradients, decoded, kept, strict=True)])
    norm = np.linalg.norm(differences.astype("float64")) / np.linalg.norm(values.astype("float64"))
    relative = np.abs(differences / values)
    return norm, np.median(relative), relative.max()


RESNET_ROWS = [
    # value codec, distribution, volume at most, error's norm at most, error of each value at most
    (QSGD(8), normal, 0.043, 0.01, None),
    (QSGD(8), scale_mixture, 0.043, None, None),
    (LogQuantizer(8), normal, 0.043, 0.01, 0.01),
    (LogQuantizer(8), scale_mixture, 0.043, 0.01, None),
    (LogQuantizer(8), student_t, 0.043, 0.01, None),
    (QSGD(4), normal, 0.031, None, None),
    (LogQuantizer(4), normal, 0.031, None, None),
    (LogQuantizer(4), scale_mixture, 0.031, None, None),
]


@pytest.mark.parametrize(("value", "distribution", "volume", "error", "each"), RESNET_ROWS, ids=lambda x: getattr(x, "__name__", repr(x)))
def test_resnet_50_at_10_percent(value, distribution, volume, error, each):
    draw = np.random.default_rng(1)
    gradients = [distribution(draw, size) for size in SIZES]
    compression = DeepReduce(TopK(0.1), Rice(), value)
    sent, large, decoded = exchanged(compression, gradients)
    relative = sent / (4 * sum(SIZES))
    norm, median, most = errors_of(large, decoded)
    figures = f"volume {relative:.4f}, error {norm:.4f} of the norm, value by value {median:.4f} median and {most:.4f} at most"
    print(f"{value!r}, {distribution.__name__}: {figures}")
    assert relative <= volume
    assert error is None or norm <= error
    assert each is None or most <= each


# The targets, 0.54 % at 8 bits and 0.42 % at 4, are reached by QSGD. LogQuantizer's two ends need 8 bytes more after padding, its 8 bin
# means 32 bytes.
ONE_LAYER = [(QSGD(8), 0.0054), (QSGD(4), 0.0042), (LogQuantizer(8), 0.00543), (LogQuantizer(4), 0.00435)]


@pytest.mark.parametrize("distribution", [normal, scale_mixture], ids=lambda d: d.__name__)
@pytest.mark.parametrize(("value", "volume"), ONE_LAYER, ids=repr)
def test_one_layer_of_36864_at_1_percent_as_a_frame(value, volume, distribution):
    draw = np.random.default_rng(2)
    relative = []
    for _ in range(5):
        payload = DeepReduce(TopK(0.01), Rice(), value).encode(bucket_of([distribution(draw, 36864)])).payload
        relative.append(8 * payload.shape[0] / (4 * 36864))
    print(f"{value!r}, {distribution.__name__}: {[f'{each:.3%}' for each in relative]}")
    assert max(relative) <= volume


def supports():
    """(size, places) at random and against each codec."""
    draw = np.random.default_rng(3)
    for size in (1, 2, 3, 7, 8, 9, 63, 64, 65, 1000, 1024, 4097, 50000):
        yield size, np.arange(0)
        yield size, np.arange(size)
        for density in (0.001, 0.01, 0.1, 0.3, 0.5, 0.7, 0.95):
            yield size, np.sort(draw.choice(size, math.ceil(density * size), replace=False))
        yield size, np.array([size - 1])
        yield size, np.arange(size - 1)
        yield size, np.arange(0, size, 2)
        yield size, np.unique([0, size // 2, size - 1])
        yield size, np.arange(size // 3, size // 3 + max(1, size // 50))  # one run
        yield size, np.unique(np.r_[0, size - 1 - np.arange(min(5, size))])  # one gap that takes all
        yield size, np.unique(np.minimum(2 ** np.arange(16), size - 1))  # gaps of every length
        clusters = draw.random(size) < np.repeat(draw.random(size // 40 + 1), 40)[:size] ** 4
        yield size, np.flatnonzero(clusters)


def raw_index_bytes(size, count):
    return 0 if count in (0, size) else math.ceil(count * max(1, int(size - 1).bit_length()) / 8)


@pytest.mark.parametrize("codec", ["fixed_width", "bitmap", "rice", "elias_fano", "run_length"])
def test_no_lossless_index_codec_expands_any_support(codec):
    sizes, places = zip(*supports(), strict=True)
    counts = [len(each) for each in places]
    encode, decode = ops.codec(codec)
    code, code_splits = encode(np.concatenate(places).astype("int32"), np.cumsum([0, *counts]), sizes, 0, 0)
    lengths = np.diff(code_splits)
    assert len(lengths) > 200
    for length, size, count in zip(lengths, sizes, counts, strict=True):
        assert length <= raw_index_bytes(size, count)
    indices, _ = decode(code, code_splits, counts, sizes, 0, 0)
    np.testing.assert_array_equal(indices, np.concatenate(places))


def values():
    """Segments of values at random and against each codec."""
    draw = np.random.default_rng(4)
    for n in (0, 1, 2, 3, 4, 5, 8, 9, 17, 511, 512, 513, 2047, 2048, 5000):
        yield draw.normal(size=n)
        yield draw.standard_t(1, size=n)
        yield np.zeros(n)
        yield np.full(n, 0.1)
        yield draw.integers(0, 2**32, n, dtype="uint32").view("float32")  # any bits: incompressible, and seldom all finite
        yield np.where(np.arange(n) % 2, 3.4e38, -1e-45)
        yield np.full(n, -1.4e-45)
        yield np.where(np.arange(n) == n - 1, np.nan, 1.0)
        yield np.exp2(draw.uniform(-149, 128, n))
        yield np.where(draw.random(n) < 0.01, 1e30, 0)


VALUE_OPTIONS = [
    *(("float32", {}), ("float16", {}), ("b_float16", {})),
    *(("qsgd", {"bits": bits, "norm": norm, "contraction": norm == "l2"}) for bits in range(2, 9) for norm in ("max", "l2")),
    *(("log_quantizer", {"bits": bits}) for bits in range(2, 9)),
    *(("tern_grad", {"contraction": contraction}) for contraction in (True, False)),
    *(("natural", {}), ("three_lc", {}), ("three_lc", {"multiplier": 1.9})),
]
DEFLATED = [
    *(Deflate(level=level, shuffle=shuffle) for level in (1, 6, 9) for shuffle in (True, False)),
    *map(Deflate, ("float16", "b_float16", QSGD(4), "tern_grad", "natural", "three_lc")),
]
ENCODERS = {
    **{f"{name} {options}": (name, partial(ops.codec(name)[0], **options)) for name, options in VALUE_OPTIONS},
    **{repr(codec): ("deflate", codec.encode) for codec in DEFLATED},
}


@pytest.mark.parametrize("name", ENCODERS)
def test_no_value_codec_expands_any_values(name):
    with np.errstate(over="ignore"):
        segments = [np.asarray(each).astype("float32") for each in values()]
    counts = [len(each) for each in segments]
    codec, encode = ENCODERS[name]
    _, decode = ops.codec(codec)
    code, code_splits, decoded = encode(np.concatenate(segments), np.cumsum([0, *counts]), 7, 8)
    for length, count in zip(np.diff(code_splits), counts, strict=True):
        assert length <= 4 * count
    np.testing.assert_array_equal(np.asarray(decode(code, code_splits, counts)).view("uint32"), decoded.numpy().view("uint32"))


@pytest.mark.parametrize("value", [Float32(), QSGD(2), QSGD(8), LogQuantizer(2), LogQuantizer(8), TernGrad(), ThreeLC()], ids=repr)
@pytest.mark.parametrize("index", [FixedWidth(), Bitmap(), Rice(), EliasFano(), RunLength()], ids=repr)
def test_a_frame_is_never_more_than_raw_pairs_its_header_and_a_row_for_each_segment(index, value):
    draw = np.random.default_rng(5)
    sizes = [1, 2, 10, 1000, 30000]
    for ratio in (1e-6, 0.01, 0.5, 0.99, 1.0):
        payload = DeepReduce(TopK(ratio), index, value).encode(bucket_of([draw.normal(size=size) for size in sizes])).payload
        counts = [max(1, math.floor(ratio * size + 0.5)) for size in sizes]
        raw = sum(raw_index_bytes(size, count) + 4 * count for size, count in zip(sizes, counts, strict=True))
        assert 8 * payload.shape[0] <= HEADER + ROW * len(sizes) + raw + PADDING


def test_random_places_cost_no_bytes():
    payload = DeepReduce(RandomK(0.01), value=Float32()).encode(bucket_of([np.ones(36864)])).payload
    assert 8 * payload.shape[0] <= HEADER + ROW + 4 * 369 + PADDING


def test_dense_ternary_values_cost_no_bytes_for_places_and_few_for_runs_of_zeros():
    compression = DeepReduce(TopK(1.0), value=ThreeLC())
    for gradient, most in ((normal(np.random.default_rng(6), 36864), 36864 / 5), (np.eye(1, 36864, 17), 36864 / 70)):
        payload = compression.encode(bucket_of([gradient])).payload
        assert 8 * payload.shape[0] <= HEADER + ROW + 4 + math.ceil(most) + 3 + PADDING
