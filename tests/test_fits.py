"""PolyFit and DoubleExpFit beside the same models fitted by NumPy and SciPy, and where there is no such fit."""

from __future__ import annotations

import numpy as np
import pytest
from fit_report import encode, error_of, kept, kinds_of, numpy_error, scipy_errors
from stages import bucket_of

from deepreduce_tf import QSGD, DeepReduce, DoubleExpFit, PolyFit, TopK


def normal(draw, size):
    return draw.standard_normal(size)


def scale_mixture(draw, size):
    """Heavy tails: normal values whose scales are log-normal."""
    return draw.standard_normal(size) * np.exp(draw.standard_normal(size))


def student_t(draw, size):
    """Heavier tails still: Student's t with 3 degrees of freedom."""
    return draw.standard_t(3, size)


DISTRIBUTIONS = pytest.mark.parametrize("distribution", [normal, scale_mixture, student_t], ids=lambda d: d.__name__)


def sample(distribution, size, ratio, seed=1):
    return kept(1e-3 * distribution(np.random.default_rng(seed), size), ratio)


@DISTRIBUTIONS
@pytest.mark.parametrize("ratio", [0.01, 0.1, 1.0])
@pytest.mark.parametrize("size", [2304, 36864, 300000])
def test_poly_fit_is_as_good_as_numpy_on_the_same_pieces(size, ratio, distribution):
    values = sample(distribution, size, ratio)
    for options in ({}, {"pieces": 1}, {"pieces": 12}, {"degree": 1}, {"degree": 12}):
        coded = encode("poly_fit", values, **options)
        ours, independent = error_of(coded, values), numpy_error(coded, values)
        print(f"{distribution.__name__} {len(values)} {options}: {ours:.6f}, NumPy {independent:.6f}, {coded.bits:.2f} bits")
        assert ours <= 1.01 * independent + 1e-6


@DISTRIBUTIONS
@pytest.mark.parametrize("ratio", [0.01, 0.1, 1.0])
def test_double_exp_fit_beside_scipy(ratio, distribution):
    values = sample(distribution, 36864, ratio)
    coded, one = encode("double_exp_fit", values), encode("poly_fit", values, pieces=1)
    ours, (refined, alone) = error_of(coded, values), scipy_errors(coded, values)
    print(
        f"{distribution.__name__} {len(values)} {kinds_of(coded)}: {ours:.5f}, SciPy {refined:.5f} and {alone:.5f}, {coded.bits:.2f} bits"
    )
    # An integral equation minimises the error of the equation, curve_fit that of the values.
    assert refined <= 1.0001 * ours and ours <= 1.0001 * error_of(one, values) and ours <= 1.6 * alone


@DISTRIBUTIONS
def test_volume_of_one_layer(distribution):
    values = sample(distribution, 36864, 0.1)
    for codec, error, bits in (("poly_fit", 0.02, 14), ("double_exp_fit", 0.3, 13)):
        coded = encode(codec, values)
        assert error_of(coded, values) <= error and coded.bits <= bits


def test_the_curve_of_two_exponentials_takes_four_numbers():
    x = np.arange(2000) / 1999
    values = np.random.default_rng(1).permutation(3 * np.exp(-9 * x) + np.exp(-x)).astype("float32")
    coded = encode("double_exp_fit", values)
    assert kinds_of(coded) == "D" and error_of(coded, values) < 1e-4
    np.testing.assert_allclose(np.sort(coded.pieces[0].numbers), [-9, -1, 1, 3], rtol=1e-3)


X = np.arange(300) / 299
SINGULAR = {
    "a constant": (np.full(300, 0.7), "P"),
    "two values": (np.where(np.arange(300) % 2, 0.7, -0.7), "PP"),
    "two points": (np.array([1.0, 2.0]), "raw"),
    "one point": (np.array([1.0]), "raw"),
    "degree + 1 points": (np.linspace(1, 2, 6), "raw"),
    "a parabola": (1 + X**2, "PP"),
    "outliers of the other sign": (np.where(np.arange(300) < 3, -1 - X, 0.7), "PR"),
    "zeros": (np.zeros(300), "Z"),
    "zeros and constants": (np.where(np.arange(300) % 3, 0.7, 0), "PZ"),
    "denormal numbers": (np.full(300, 1e-40), "Z"),
}


@pytest.mark.parametrize(("values", "kinds"), SINGULAR.values(), ids=SINGULAR)
def test_a_singular_double_exponential_falls_back(values, kinds):
    values = values.astype("float32")
    coded = encode("double_exp_fit", values)
    assert kinds_of(coded) == kinds
    np.testing.assert_allclose(coded.decoded, values, rtol=1e-3, atol=1e-38)


NEARLY_SINGULAR = {
    "a line": 2 - X,
    "ties": np.array([3.0, 2.0, 1.0]).repeat(100),
    "one exponential": np.exp(-5 * X),
    "one growing exponential": np.exp(3 * X),
    "steep": np.exp(-150 * X),
    "all magnitudes": 1e37 * np.exp(-170 * X),
    "huge": 3e38 * (1 - X / 2),
    "small": 1.2e-38 * (1 + X),
    "alternating": (1 + X) * np.where(np.arange(300) % 2, 1, -1),
    "one outlier": np.where(np.arange(300) == 7, 1e6, 1 + X),
    "an outlier of a long tail": np.where(np.arange(300) == 7, 1000, np.where(X < 0.5, 1, 1 + 9 * X)),
}


@pytest.mark.parametrize("codec", ["poly_fit", "double_exp_fit"])
@pytest.mark.parametrize("values", NEARLY_SINGULAR.values(), ids=NEARLY_SINGULAR)
def test_a_nearly_singular_one_is_fitted_well_or_falls_back(values, codec):
    values = values.astype("float32")
    coded = encode(codec, values)
    signs = np.where(np.abs(values) < np.float32(2.0**-126), 0, np.sign(values))
    assert np.isfinite(coded.decoded).all() and np.array_equal(np.sign(coded.decoded), signs)
    assert error_of(coded, values) < 0.2 and coded.bits < 32


@pytest.mark.parametrize("codec", [PolyFit(), PolyFit(1, 1), DoubleExpFit()], ids=repr)
@DISTRIBUTIONS
def test_a_fit_is_a_contraction(distribution, codec):
    for seed in range(20):
        values = sample(distribution, 100 * 2 ** (seed % 8), 0.5, seed)
        assert np.linalg.norm(codec(values) - values) < np.linalg.norm(values)


def test_positions_make_a_fit_larger_than_qsgd_and_smaller_than_raw_values():
    bucket = bucket_of([sample(normal, 36864, 1.0)])
    sizes = [DeepReduce(TopK(0.1), value=value).encode(bucket).payload.shape[0] for value in (QSGD(), DoubleExpFit(), PolyFit(), "float32")]
    assert sizes == sorted(sizes)
