"""Bytes against the volume targets: all that is sent is counted, headers, tables and dense small gradients too."""

import math

import numpy as np
import pytest
import tensorflow as tf
from format.reference import decode_frame
from resnet50_shapes import SHAPES
from stages import bucket_of, built_in, ragged, segments_of

from deepreduce_tf import (
    QSGD,
    Adaptive,
    BloomFilter,
    DeepReduce,
    Deflate,
    DeltaHuffman,
    Float32,
    Huffman,
    IndexCodec,
    LogQuantizer,
    PolyFit,
    RandomK,
    Rice,
    SketchML,
    TernGrad,
    ThreeLC,
    TopK,
    ValueCodec,
    ops,
)

LOSSLESS = [codec for codec in built_in(IndexCodec) if codec.lossless]
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
    norm, median, largest = errors_of(large, decoded)
    errors = f"error {norm:.4f} of the norm, value by value {median:.4f} median and {largest:.4f} at most"
    print(f"{value!r}, {distribution.__name__}: volume {relative:.4f}, {errors}")
    assert relative <= volume
    assert error is None or norm <= error
    assert each is None or largest <= each


# The targets, 0.54 % at 8 bits and 0.42 % at 4, are reached by QSGD. LogQuantizer's two limits need 8 bytes more after padding, its 8 bin
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


# SKCompress is published at about 0.34 % of this layer, 10.9 bits for a pair. Its keys of whole bytes take 9.7 of them here; with gaps by
# their number of bits instead, both codes together stay below that. Header, row and padding of a frame are 42 bytes or more, 0.03 %.
SKCOMPRESS = [
    # index codec, bits, codes at most, whole frame at most, error's norm at most where values are normal, and of heavy tails
    (DeltaHuffman(), 2, 0.0039, 0.0042, 0.05, 0.18),
    (Huffman(), 2, 0.0034, 0.0037, 0.05, 0.18),
    (Huffman(), 3, 0.0037, 0.0040, 0.03, 0.09),
    (Huffman(), 4, 0.0040, 0.0043, 0.015, 0.04),
    (Huffman(), 6, 0.0045, 0.0048, 0.008, 0.02),
    (Huffman(), 8, 0.0045, 0.0048, 0.008, 0.02),
]


@pytest.mark.parametrize("distribution", [normal, scale_mixture], ids=lambda d: d.__name__)
@pytest.mark.parametrize(("index", "bits", "codes", "frame", "normal_error", "tail_error"), SKCOMPRESS, ids=repr)
def test_skcompress_of_one_layer_of_36864_at_1_percent(index, bits, codes, frame, normal_error, tail_error, distribution):
    draw = np.random.default_rng(6)
    compression = DeepReduce(TopK(0.01), index, SketchML(bits))
    results = []
    for _ in range(5):
        gradients = [distribution(draw, 36864)]
        sent, large, decoded = exchanged(compression, gradients)
        (segment,) = decode_frame(compression.encode(bucket_of(gradients)).payload.numpy().tobytes()).segments
        results.append((len(segment.index_code) + len(segment.value_code), sent, errors_of(large, decoded)[0]))
    coded, sent, error = np.max(results, axis=0)
    relative = f"codes {coded / (4 * 36864):.3%}, frame {sent / (4 * 36864):.3%} beside 0.34 % as published"
    print(f"{index!r}, {bits} bits, {distribution.__name__}: {relative}; error {error:.4f} of the norm")
    assert coded <= codes * 4 * 36864 and sent <= frame * 4 * 36864
    assert error <= (normal_error if distribution is normal else tail_error)


@pytest.mark.parametrize("distribution", [normal, scale_mixture], ids=lambda d: d.__name__)
def test_sketch_ml_errs_less_than_other_quantizers_of_as_many_bytes(distribution):
    draw = np.random.default_rng(7)
    gradients = [distribution(draw, 36864)]

    def bytes_and_error(value):
        sent, large, decoded = exchanged(DeepReduce(TopK(0.01), Rice(), value), gradients)
        return sent, errors_of(large, decoded)[0]

    for bits in (2, 3, 4):
        sent, error = bytes_and_error(SketchML(bits))
        for stage in (QSGD, LogQuantizer):
            others = [bytes_and_error(stage(other)) for other in range(2, 9)]
            assert error < min(other for other_sent, other in others if other_sent <= sent + 8), (bits, stage)


def supports():
    """(size, support) at random and against each codec."""
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


@pytest.mark.parametrize("codec", LOSSLESS, ids=repr)
def test_no_lossless_index_codec_expands_any_support(codec):
    sizes, kept = zip(*supports(), strict=True)
    counts = [len(each) for each in kept]
    encode, decode = ops.codec(type(codec).__name__)
    shapes = [[[2, size // 40] for size in sizes]] if codec == Adaptive() else []
    code, code_splits = encode(np.concatenate(kept).astype("int32"), np.cumsum([0, *counts]), sizes, 0, 0, *shapes)
    lengths = np.diff(code_splits)
    assert len(lengths) > 200
    for length, size, count in zip(lengths, sizes, counts, strict=True):
        assert length <= raw_index_bytes(size, count)
    indices, _ = decode(code, code_splits, counts, sizes, 0, 0)
    np.testing.assert_array_equal(indices, np.concatenate(kept))


def code_bytes(codec, support, shape):
    """Bytes of the index code of one segment."""
    return len(codec.encode(ragged([support], np.int32), segments_of([shape]))[0].values)


def bound_bits(size, count):
    """The smallest mean size of any code, when all supports are equally likely."""
    return (math.lgamma(size + 1) - math.lgamma(count + 1) - math.lgamma(size - count + 1)) / math.log(2)


@pytest.mark.parametrize("shape", [(10**6,), (1000, 1000), (9, 333, 333), (62500, 16)], ids=str)
@pytest.mark.parametrize("ratio", [0.001, 0.003, 0.01, 0.03, 0.1, 0.2, 0.38, 0.5])
def test_adaptive_on_indices_without_structure_is_within_one_percent_of_the_bound(shape, ratio):
    size = math.prod(shape)
    support = np.sort(np.random.default_rng(6).choice(size, round(ratio * size), replace=False))
    bound = bound_bits(size, len(support)) / 8
    adaptive, rice = (code_bytes(codec, support, shape) / bound for codec in (Adaptive(), Rice()))
    print(f"{shape}, {ratio:.1%}: Adaptive {adaptive:.4f} of the bound, Rice {rice:.4f}")
    assert adaptive <= 1.01


def dense_layer(draw):
    """A batch of 32 through a layer of which some inputs and units are idle."""
    inputs = draw.normal(size=(32, 512)) * (draw.random(512) < 0.6) * np.exp(draw.normal(size=512))
    return inputs.T @ (draw.normal(size=(32, 256)) * (draw.random(256) < 0.5) * np.exp(draw.normal(size=256)))


def embedding(draw):
    """A batch that touches 300 of 20,000 rows."""
    return np.where(np.isin(np.arange(20000), draw.choice(20000, 300))[:, None], draw.normal(size=(20000, 32)), 0)


def convolution(draw):
    """3 x 3 positions of channels, active to different degrees."""
    return draw.normal(size=(3, 3, 64, 128)) * np.exp(draw.normal(size=(64, 1)) + draw.normal(size=128))


def largest(gradient, ratio):
    magnitudes = np.abs(gradient).ravel()
    order = np.argsort(-magnitudes, kind="stable")[: round(ratio * magnitudes.size)]
    return np.sort(order[magnitudes[order] > 0])


@pytest.mark.parametrize("ratio", [0.001, 0.01, 0.1])
@pytest.mark.parametrize("layer", [dense_layer, embedding, convolution], ids=lambda layer: layer.__name__)
def test_adaptive_is_ten_percent_under_rice_where_rows_and_columns_differ(layer, ratio):
    gradient = layer(np.random.default_rng(7))
    support = largest(gradient, ratio)
    adaptive, rice = (8 * code_bytes(codec, support, gradient.shape) / len(support) for codec in (Adaptive(), Rice()))
    print(f"{layer.__name__}, {ratio:.1%}: Adaptive {adaptive:.2f} bits per index, Rice {rice:.2f}")
    assert adaptive <= 0.9 * rice


def shaped_supports():
    """(support, shape) of every kind, from tiny ones on."""
    draw = np.random.default_rng(8)
    for size, support in supports():
        yield support, (size,)
        yield support, (size, 1)
        for columns in (2, 7, 8, 64, 100):
            if size % columns == 0:
                yield support, (1, size // columns, columns)
    for shape in ((100, 300), (3, 3, 16, 32), (5, 2000), (2000, 5)):
        for ratio in (0.0005, 0.01, 0.1, 0.4, 0.8):
            noise = draw.normal(size=shape)
            yield largest(noise, ratio), shape
            yield largest(noise * (draw.random(shape[-1]) < 0.3), ratio), shape
            yield largest(noise * (draw.random((shape[-2], 1)) < 0.3), ratio), shape
            yield largest(noise * np.repeat(draw.random(noise.size // 50 + 1) < 0.2, 50)[: noise.size].reshape(shape), ratio), shape


def test_adaptive_is_never_longer_than_rice():
    ratios = []
    for support, shape in shaped_supports():
        adaptive, rice = (code_bytes(codec, support, shape) for codec in (Adaptive(), Rice()))
        assert adaptive <= rice
        if rice:
            ratios.append(adaptive / rice)
    print(f"{len(ratios)} supports: Adaptive by Rice {min(ratios):.3f} to {max(ratios):.3f}, median {np.median(ratios):.3f}")
    assert len(ratios) > 300


def test_adaptive_is_given_the_shape_of_each_gradient():
    draw = np.random.default_rng(9)
    gradients = [dense_layer(draw), convolution(draw), draw.normal(size=5000)]
    supports = [largest(gradient, 0.01) for gradient in gradients]
    codes = sum(code_bytes(Adaptive(), support, gradient.shape) for support, gradient in zip(supports, gradients, strict=True))
    compression = DeepReduce(TopK(0.01), Adaptive(), Float32())
    for call in (lambda f: f(), lambda f: tf.function(f)()):
        payload = call(lambda: compression.encode(bucket_of(gradients)).payload)
        rest = 8 * payload.shape[0] - codes - 4 * sum(map(len, supports))
        assert 0 < rest <= HEADER + 3 * ROW + PADDING


def test_adaptive_knows_no_structure_of_indexed_slices_and_unknown_shapes():
    support = np.arange(3, 720, 8)
    plain, shaped = code_bytes(Adaptive(), support, (720,)), code_bytes(Adaptive(), support, (90, 8))

    def length(shape):
        segments = segments_of([(720,)])._replace(shapes=[shape])
        return tf.size(Adaptive().encode(ragged([support], np.int32), segments)[0].values)

    assert shaped < plain
    assert length(tf.constant([90, 8])) == length(tf.constant([9, 10, 8])) == shaped
    assert length(tf.constant([720, 9, 8])) == length(tf.constant([720])) == plain  # rows of 9 x 8 values
    assert tf.function(length)(tf.constant([90, 8])) == plain


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


EXPANDABLE = [
    *built_in(
        ValueCodec,
        *(QSGD(bits) for bits in range(2, 9)),
        *(LogQuantizer(bits) for bits in range(2, 9)),
        *(SketchML(bits) for bits in range(2, 9)),
        *(PolyFit(degree, pieces) for degree in (1, 5, 15) for pieces in (None, 1, 64)),
        ThreeLC(1.9),
        *(Deflate(level=level, shuffle=shuffle) for level in (1, 6, 9) for shuffle in (True, False)),
        *map(Deflate, ("float16", "b_float16", QSGD(4), "tern_grad", "natural", "three_lc")),
    ),
    *(codec.contraction() for codec in (TernGrad(), *(QSGD(bits, "l2") for bits in range(2, 9)))),
]


@pytest.mark.parametrize("codec", EXPANDABLE, ids=repr)
def test_no_value_codec_expands_any_values(codec):
    with np.errstate(over="ignore"):
        segments = [np.asarray(each).astype("float32") for each in values()]
    counts = [len(each) for each in segments]
    rows = tf.RaggedTensor.from_row_lengths(np.concatenate(segments), tf.constant(counts, tf.int64))
    code, promised = codec.encode(rows, tf.constant(7, tf.int64), tf.constant(8, tf.int64))
    for length, count in zip(code.row_lengths().numpy(), counts, strict=True):
        assert length <= 4 * count
    decoded = codec.decode(code, rows.row_lengths())
    np.testing.assert_array_equal(decoded.values.numpy().view("uint32"), promised.values.numpy().view("uint32"))


@pytest.mark.parametrize("value", built_in(ValueCodec, QSGD(2), LogQuantizer(2), SketchML(2), SketchML(8)), ids=repr)
@pytest.mark.parametrize("index", LOSSLESS, ids=repr)
def test_a_frame_is_never_more_than_raw_pairs_its_header_and_a_row_for_each_segment(index, value):
    draw = np.random.default_rng(5)
    sizes = [1, 2, 10, 1000, 30000]
    for ratio in (1e-6, 0.01, 0.5, 0.99, 1.0):
        payload = DeepReduce(TopK(ratio), index, value).encode(bucket_of([draw.normal(size=size) for size in sizes])).payload
        counts = [max(1, math.floor(ratio * size + 0.5)) for size in sizes]
        raw = sum(raw_index_bytes(size, count) + 4 * count for size, count in zip(sizes, counts, strict=True))
        assert 8 * payload.shape[0] <= HEADER + ROW * len(sizes) + raw + PADDING


def test_a_bloom_filter_beside_32_bit_indices_and_beside_rice():
    """Published: index bytes up to 80 % less than 32-bit indices. That is so at a rate of 0.1, at which nine of ten indices sent are false
    positives. Rice sends the indices themselves, in fewer bytes than p0 with the values of its false positives, and in fewer than any
    filter of which nine of ten are right.
    """
    size, draw = 1_000_000, np.random.default_rng(6)
    given = np.sort(draw.choice(size, size // 100, replace=False))

    def rice(support):
        return code_bytes(Rice(), support, (size,))

    exact = rice(given)
    print(f"1 % of {size} elements: 32-bit indices {4 * len(given)} bytes, Rice {exact}. Index bytes, and with 8-bit values, beside these:")
    print("   rate  policy    indices   right    bytes  / 32-bit  / Rice  / Rice of indices sent / Rice, both with values")
    for fpr in (0.1, 0.01, 0.001):
        for policy in BloomFilter.policies:
            code, _, support, _ = ops.codec("bloom_filter")[0](given.astype("int32"), [0, len(given)], [size], 0, 0, fpr=fpr, policy=policy)
            support, length = support.numpy(), len(code)
            right = np.isin(support, given).sum() / len(given)
            whole = (length + len(support)) / (exact + len(given))
            print(
                f"  {fpr:5}  {policy:9} {len(support):7}  {right:6.1%}  {length:7}  {length / (4 * len(given)):8.1%}  {length / exact:6.2f}"
                f"  {length / rice(support):21.2f}  {whole:24.2f}"
            )
            assert length <= (4 * len(given)) * {0.1: 0.2, 0.01: 0.31, 0.001: 0.46}[fpr]
            assert policy != "p0" or (right == 1 and whole > 1)
            assert right < 0.9 or length > exact or policy == "p0"


def test_random_indices_cost_no_bytes():
    payload = DeepReduce(RandomK(0.01), value=Float32()).encode(bucket_of([np.ones(36864)])).payload
    assert 8 * payload.shape[0] <= HEADER + ROW + 4 * 369 + PADDING


def test_dense_ternary_values_cost_no_bytes_for_indices_and_few_for_runs_of_zeros():
    compression = DeepReduce(TopK(1.0), value=ThreeLC())
    for gradient, value_bytes in ((normal(np.random.default_rng(6), 36864), 36864 / 5), (np.eye(1, 36864, 17), 36864 / 70)):
        payload = compression.encode(bucket_of([gradient])).payload
        assert 8 * payload.shape[0] <= HEADER + ROW + 4 + math.ceil(value_bytes) + 3 + PADDING
