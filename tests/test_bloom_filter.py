"""BloomFilter: what it accepts, what each policy sends of that, and what the compressor does with a codec that changes the support."""

import os

import numpy as np
import pytest
import tensorflow as tf
from format.reference.bloom_filter import POLICIES
from stages import bucket_of, residuals_of

from deepreduce_tf import BloomFilter, DeepReduce, Rice, TopK, ops

ENCODE, DECODE = ops.codec("bloom_filter")
MIX = [(30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)]
GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def encode(supports, sizes, seed=0, step=0, **options):
    """code, code_splits and the supports that decode, of a batch of segments."""
    counts = [len(each) for each in supports]
    code, code_splits, indices, splits = ENCODE(
        np.concatenate(supports).astype("int32"), np.cumsum([0, *counts]), sizes, seed, step, **options
    )
    return code, code_splits, np.split(indices.numpy(), splits.numpy()[1:-1]), splits


def uniform(draw, size, count):
    return np.sort(draw.choice(size, count, replace=False))


def clustered(draw, size, count):
    """Half of the elements of some rows of 128."""
    rows = draw.choice(size // 128, 1 + count // 40, replace=False)
    kept = np.zeros((size // 128, 128), bool)
    kept[rows] = draw.random((len(rows), 128)) < 0.5
    return np.flatnonzero(kept)[:count]


def strided(draw, size, count):
    """Seven in ten of the elements of some columns of 64."""
    columns = draw.permutation(64)[: 1 + count * 64 * 2 // size]
    kept = np.zeros((size // 64, 64), bool)
    kept[:, columns] = draw.random((size // 64, len(columns))) < 0.7
    return np.sort(draw.permutation(np.flatnonzero(kept))[:count])


def rows(draw, size, count):
    """Whole rows of 64, at the same words of the filter."""
    return (64 * uniform(draw, size // 64, count // 64)[:, None] + np.arange(64)).ravel()


@pytest.mark.parametrize("shape", [uniform, rows], ids=lambda f: f.__name__)
def test_a_low_false_positive_rate_is_within_10_percent_of_the_one_asked_for(shape):
    size, fpr, count = 10_000_000, 1e-4, 10_048
    given = shape(np.random.default_rng(1), size, count)
    accepted = [len(encode([given], [size], seed=seed, fpr=fpr, policy="p0")[2][0]) for seed in range(20)]
    realised = (np.mean(accepted) - count) / (size - count)
    print(f"{shape.__name__}: asked {fpr}, realised {realised:.6f} ({realised / fpr - 1:+.1%})")
    assert abs(realised / fpr - 1) < 0.1


@pytest.mark.parametrize("count", [17, 64, 300, 3000])
@pytest.mark.parametrize("fpr", [0.001, 0.01, 0.1])
def test_one_short_run_has_about_twice_the_false_positives_at_most(fpr, count):
    size = 200_000
    accepted = [len(encode([np.arange(999, 999 + count)], [size], seed=seed, fpr=fpr, policy="p0")[2][0]) for seed in range(60)]
    assert (np.mean(accepted) - count) / (size - count) < 2.3 * fpr


@pytest.mark.parametrize("shape", [uniform, clustered, strided], ids=lambda f: f.__name__)
@pytest.mark.parametrize("fpr", [0.001, 0.01, 0.1, 0.3, 0.6, 0.75])
def test_the_false_positive_rate_is_within_10_percent_of_the_one_asked_for(fpr, shape):
    size, count = 1_000_000, 10_000
    given = shape(np.random.default_rng(1), size, count)
    assert len(given) == count
    accepted = [len(encode([given], [size], seed=seed, fpr=fpr, policy="p0")[2][0]) for seed in range(20)]
    realised = (np.mean(accepted) - count) / (size - count)
    print(f"{shape.__name__}: asked {fpr}, realised {realised:.5f} ({realised / fpr - 1:+.1%})")
    assert abs(realised / fpr - 1) < 0.1


@pytest.mark.parametrize("policy", POLICIES)
def test_encoder_and_decoder_agree_in_a_thousand_cases(policy):
    draw = np.random.default_rng(2)
    sizes = draw.integers(1, 20000, 1000)
    given = [uniform(draw, size, int(size * draw.random() ** 3)) for size in sizes]
    for fpr, part in zip((1e-4, 0.003, 0.05, 0.5), np.array_split(np.arange(1000), 4), strict=True):
        chosen, chosen_sizes = [given[i] for i in part], sizes[part]
        code, code_splits, supports, splits = encode(chosen, chosen_sizes, 3, 4, fpr=fpr, policy=policy)
        indices, decoded_splits = DECODE(code, code_splits, np.diff(splits), chosen_sizes, 3, 4)
        np.testing.assert_array_equal(decoded_splits, splits)
        np.testing.assert_array_equal(indices, np.concatenate(supports))
        for support, original in zip(supports, chosen, strict=True):
            assert len(support) == len(original) or policy == "p0"
            assert np.isin(original, support).all() or policy != "p0"


def mix(z):
    for shift, factor in MIX:
        z = (z ^ (z >> np.uint64(shift))) * np.uint64(factor)
    return z ^ (z >> np.uint64(31))


def random_bits(key, position):
    return mix(np.uint64(key) + (np.asarray(position, np.uint64) + np.uint64(1)) * GOLDEN)


# Also in tests/cc/index/bloom_filter_test.cc, in a build with other optimisations; there is one portable code path.
DIGESTS = {
    "naive": 0x2797622598A934CD,
    "p0": 0x159D58102ADAD281,
    "p1": 0xC3DDAF198FEEDC0C,
    "p2": 0xA20DF3D96EACD463,
    "leftmost": 0x2797622598A934CD,
    "middle": 0x564BC250DDDAE7C0,
    "rightmost": 0x23C7FC1DE6CA582B,
}


@pytest.mark.parametrize("policy", POLICIES)
def test_many_supports_are_the_same_in_every_build(policy):
    with np.errstate(over="ignore"):
        sizes = 1 + (random_bits(1, range(40)) % np.uint64(3000)).astype("int64")
        counts = sizes * (random_bits(2, range(40)) % np.uint64(100)).astype("int64") // 100
        given, splits = ops.codec("seeded_support")[1](np.empty(0, "uint8"), np.zeros(41, "int64"), counts, sizes, 5, 8)
        given = np.split(given.numpy(), splits.numpy()[1:-1])
        sent = np.concatenate([np.concatenate(encode(given, sizes, 5, 9, fpr=fpr, policy=policy)[2]) for fpr in (2**-10, 0.125, 0.5)])
        digest = random_bits(sent, np.arange(len(sent))).sum(dtype="uint64")
    assert hex(digest) == hex(DIGESTS[policy])


def test_p2_keeps_fewer_false_positives_than_p1():
    size, fpr, draw = 1_000_000, 0.001, np.random.default_rng(3)
    kept = {policy: [] for policy in ("p0", "p1", "p2", "leftmost", "middle", "rightmost")}
    for seed in range(10):
        given = uniform(draw, size, size // 100)
        for policy, numbers in kept.items():
            (support,) = encode([given], [size], seed=seed, fpr=fpr, policy=policy)[2]
            numbers.append(np.setdiff1d(support, given).size)
    means = {policy: float(np.mean(numbers)) for policy, numbers in kept.items()}
    print(f"false positives among {size // 100} indices at a rate of {fpr} (r = 1 %): {means}")
    assert all(p2 <= p1 for p2, p1 in zip(kept["p2"], kept["p1"], strict=True))
    assert means["p2"] < means["leftmost"] / 10


GRADIENT = np.random.default_rng(4).normal(size=(300, 200)).astype("float32")


@pytest.mark.parametrize("fpr", [0.001, 0.1])
def test_p0_has_no_error_on_the_support_of_the_sparsifier(fpr):
    seen = DeepReduce(TopK(0.02), BloomFilter(fpr, "p0"), "float32")(GRADIENT).numpy()
    kept = TopK(0.02)(GRADIENT).numpy() != 0
    np.testing.assert_array_equal(seen[kept], GRADIENT[kept])
    others = (seen != 0) & ~kept
    np.testing.assert_array_equal(seen[others], GRADIENT[others])
    assert others.sum() == pytest.approx(fpr * GRADIENT.size * 0.98, rel=0.5)


@pytest.mark.parametrize("policy", POLICIES)
def test_a_called_codec_gives_the_gradient_at_the_support_and_naive_other_values(policy):
    sparse = np.where(np.abs(GRADIENT) > 2, GRADIENT, 0)
    seen = BloomFilter(0.02, policy)(sparse, seed=1, step=2).numpy()
    (support,) = encode([np.flatnonzero(sparse)], [sparse.size], 1, 2, fpr=0.02, policy=policy)[2]
    expected = sparse[sparse != 0] if policy == "naive" else sparse.ravel()[support]
    np.testing.assert_array_equal(seen.ravel()[support], expected)
    assert np.count_nonzero(np.delete(seen.ravel(), support)) == 0


def test_naive_is_wrong_after_the_first_false_positive():
    kept = TopK(0.02)(GRADIENT).numpy()
    seen = DeepReduce(TopK(0.02), BloomFilter(0.01, "naive"), "float32", error_feedback=False)(GRADIENT).numpy()
    np.testing.assert_array_equal(seen[seen != 0], kept[kept != 0])
    wrong = np.flatnonzero(seen != kept)
    assert len(wrong) > np.count_nonzero(kept) / 2
    assert kept.ravel()[wrong[0]] == 0  # the first is a false positive


def test_naive_is_refused_with_error_feedback_and_says_what_to_use():
    with pytest.raises(ValueError, match=r"`policy` must be another with error feedback.*policy='p0', or error_feedback=False. Received"):
        DeepReduce(index=BloomFilter(policy="naive"))
    for policy in set(POLICIES) - {"naive"}:
        DeepReduce(index=BloomFilter(policy=policy))


@pytest.mark.parametrize("policy", sorted(set(POLICIES) - {"naive"}))
def test_values_are_those_of_the_support_and_the_residual_what_is_left(policy):
    gradients = [GRADIENT, GRADIENT[:50]]
    before = [np.round(GRADIENT * 0.5, 1), np.zeros((50, 200), "float32")]
    residuals = residuals_of(before)
    compression = DeepReduce(TopK(0.02), BloomFilter(0.05, policy), "float32")
    bucket = bucket_of(gradients, residuals, step=3)
    encoded = compression.encode(bucket)
    seen = compression.decode(encoded.payload, bucket, tf.constant(1.0))
    encoded.commit()
    for gradient, old, sent, residual in zip(gradients, before, seen, residuals, strict=True):
        acc = old + gradient
        sent = sent.numpy()
        np.testing.assert_array_equal(sent[sent != 0], acc[sent != 0])
        np.testing.assert_array_equal(residual.numpy(), acc - sent)
        assert np.count_nonzero(sent) > 0.015 * gradient.size


@pytest.mark.parametrize("bad", [np.nan, np.inf], ids=str)
@pytest.mark.parametrize("policy", ["p0", "p1", "p2", "leftmost"])
def test_a_gradient_that_is_not_finite_sends_nothing_finite_and_leaves_its_residual(policy, bad):
    sick = GRADIENT.copy()
    sick[7, 7] = bad
    residuals = residuals_of([GRADIENT, GRADIENT])
    compression = DeepReduce(TopK(0.02), BloomFilter(0.05, policy), "float32")
    bucket = bucket_of([sick, GRADIENT], residuals)
    encoded = compression.encode(bucket)
    first, second = compression.decode(encoded.payload, bucket, tf.constant(1.0))
    encoded.commit()
    assert not np.isfinite(first.numpy()[first != 0]).any() and np.isfinite(second).all()
    np.testing.assert_array_equal(residuals[0].numpy(), GRADIENT)


def test_false_positives_differ_from_step_to_step():
    given = uniform(np.random.default_rng(5), 100_000, 1000)
    supports = [encode([given], [100_000], step=step, fpr=0.05, policy="p0")[2][0] for step in range(3)]
    extra = [set(support) - set(given) for support in supports]
    assert all(len(each) > 4000 for each in extra)
    for a, b in ((0, 1), (1, 2), (0, 2)):
        assert len(extra[a] & extra[b]) < 0.1 * len(extra[a])


def test_rows_of_indexed_slices_are_sent_exactly_by_rice():
    slices = tf.IndexedSlices(tf.constant(GRADIENT[:20]), tf.range(0, 200, 10), tf.constant([300, 200]))
    compression = DeepReduce(TopK(0.01), BloomFilter(0.5, "p1"), "float32")
    bucket = bucket_of([slices])
    payload = compression.encode(bucket).payload
    assert payload.numpy().view("uint8")[5] == Rice.codec_id
    (seen,) = compression.decode(payload, bucket, tf.constant(1.0))
    np.testing.assert_array_equal(seen.values, GRADIENT[:20])
    np.testing.assert_array_equal(seen.indices, range(0, 200, 10))


@pytest.mark.skipif(os.environ.get("TF_CPP_MIN_LOG_LEVEL", "0") > "1", reason="TensorFlow's warnings are off")
def test_a_code_larger_than_raw_pairs_is_told_once(capfd):
    codec = BloomFilter(0.0371, "p0")  # a rate that no other test has: each op says it once
    for _ in range(3):
        codec(np.where(GRADIENT > 2.5, GRADIENT, 0))
    (line,) = (line for line in capfd.readouterr().err.splitlines() if "BloomFilter" in line)
    count = int((GRADIENT > 2.5).sum())
    assert f"more than the raw (index, value) pairs that it was given: {8 * count} bytes. Rice is exact and smaller" in line
    BloomFilter(0.0372, "p2")(np.where(GRADIENT > 2.5, GRADIENT, 0))
    assert "BloomFilter" not in capfd.readouterr().err
