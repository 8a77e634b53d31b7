"""Under error feedback every value codec must shrink what is left: E|Q(v) - v|^2 < |v|^2, also for values made against it."""

import numpy as np
import pytest
import tensorflow as tf
from stages import built_in

from deepreduce_tf import QSGD, Deflate, LogQuantizer, SketchML, TernGrad, ThreeLC, ValueCodec

CODECS = built_in(
    ValueCodec,
    ThreeLC(1.9),
    *(QSGD(bits, norm) for bits in range(2, 9) for norm in ("max", "l2")),
    *(codec(bits) for codec in (LogQuantizer, SketchML) for bits in (2, 4, 8)),
    *(Deflate(value) for value in (QSGD(2), TernGrad())),
)
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
    rows = tf.RaggedTensor.from_row_lengths(np.concatenate(values), [*map(len, values)])
    splits, given = rows.row_splits.numpy(), rows.values.numpy().astype("float64")

    @tf.function
    def squared_errors(step):
        _, sent = codec.contraction().encode(rows, tf.constant(7, tf.int64), step)
        return (tf.cast(sent.values, tf.float64) - given) ** 2

    mean = sum(squared_errors(tf.constant(step, tf.int64)).numpy() for step in range(DRAWS)) / DRAWS
    error, norm = (np.add.reduceat(each, splits[:-1]) for each in (mean, given**2))
    worst = int(np.argmax(error / norm))
    print(f"{codec}: at most {error[worst] / norm[worst]:.3f} of |v|^2, with {values[worst][:3]}... of {len(values[worst])}")
    assert error[worst] < norm[worst]
