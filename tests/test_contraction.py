"""Under error feedback every value codec must shrink what is left: E|Q(v) - v|^2 < |v|^2, also for values made against it."""

import numpy as np
import pytest
import tensorflow as tf

from deepreduce_tf import (
    QSGD,
    BFloat16,
    Deflate,
    DoubleExpFit,
    Float16,
    Float32,
    LogQuantizer,
    Natural,
    PolyFit,
    SketchML,
    TernGrad,
    ThreeLC,
)

CODECS = [
    *(Float32(), Float16(), BFloat16(), PolyFit(), DoubleExpFit(), TernGrad(), Natural(), ThreeLC(), ThreeLC(1.9)),
    *(QSGD(bits, norm) for bits in range(2, 9) for norm in ("max", "l2")),
    *(codec(bits) for codec in (LogQuantizer, SketchML) for bits in (2, 4, 8)),
    *(Deflate(value) for value in (Float32(), QSGD(2), TernGrad())),
]
DRAWS = 300


def segments():
    draw = np.random.default_rng(0)
    for n in (1, 2, 3, 10, 100, 511, 512, 2000):
        yield draw.normal(size=n)
        yield draw.standard_t(1.5, n)
        yield np.ones(n)
        yield np.where(np.arange(n) % 2, 1e-6, -1.0)
        for small in (0.5, 0.2, 0.1, 0.05, 0.035, 0.03, 0.02, 0.005, 1e-4):  # one large value, whose scale the small ones get
            yield np.where(np.arange(n) == n // 2, 1.0, small)
            yield np.where(np.arange(n) % 7 == 0, 1.0, -small)


@pytest.mark.parametrize("codec", CODECS, ids=repr)
def test_the_expected_error_is_below_the_values(codec):
    values = [np.float32(each) for each in segments()]
    splits = np.cumsum([0, *map(len, values)])
    given = np.concatenate(values).astype("float64")

    @tf.function
    def squared_errors(step):
        sent = codec.contraction().encode(tf.constant(given, tf.float32), splits, tf.constant(7, tf.int64), step)[2]
        return (tf.cast(sent, tf.float64) - given) ** 2

    mean = sum(squared_errors(tf.constant(step, tf.int64)).numpy() for step in range(DRAWS)) / DRAWS
    error, norm = (np.add.reduceat(each, splits[:-1]) for each in (mean, given**2))
    worst = int(np.argmax(error / norm))
    print(f"{codec}: at most {error[worst] / norm[worst]:.3f} of |v|^2, with {values[worst][:3]}... of {len(values[worst])}")
    assert error[worst] < norm[worst]
