"""docs/stages.md runs as it stands there, also between ranks."""

import re
from pathlib import Path

import horovod.tensorflow as hvd
import numpy as np
import pytest
import tensorflow as tf
from noise import SHAPES, assert_nothing_is_lost, run_noise

from deepreduce_tf import QSGD, DeepReduce, Deflate, TopK
from horovod_ext.exchange import exchange

RANK = hvd.rank()
PAGE = (Path(__file__).parents[2] / "docs" / "stages.md").read_text()
NAMES: dict = {}
for block in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL):
    exec(block, NAMES)
AboveDeviation, Signs = NAMES["AboveDeviation"], NAMES["Signs"]


def gradients_of(rank):
    draw = np.random.default_rng(rank)
    return [(scale * draw.standard_t(3, size)).astype("float32") for scale, size in ((1, 3000), (100, 5000), (1e-3, 40))]


def sent_by(rank, factor):
    """What the page says that a rank sends, in NumPy."""
    for gradient in gradients_of(rank):
        kept = np.abs(gradient) > factor * np.sqrt(np.mean(gradient.astype("float64") ** 2))
        assert 0 < kept.sum() < gradient.size
        yield np.where(kept, np.where(gradient >= 0, 1, -1) * np.abs(gradient[kept]).mean(), 0)


def test_the_example_keeps_what_stands_out():
    assert NAMES["received"].numpy().tolist() == [0, -3, 0, 0, 0, 0, 0, 0]


def test_what_ranks_receive_is_what_the_page_says_that_each_sends():
    compression = DeepReduce(AboveDeviation(2.5), "gap_bytes", "signs", error_feedback=False, min_size=0)
    received = exchange(compression, [tf.constant(g) for g in gradients_of(RANK)], [tf.Variable(g) for g in gradients_of(0)], op=hvd.Sum)
    for total, first, second in zip(received, sent_by(0, 2.5), sent_by(1, 2.5), strict=True):
        np.testing.assert_allclose(total, first + second, rtol=0, atol=1e-6 * np.abs(first).max())


@pytest.mark.parametrize("ratio", [1e-6, 0.001, 0.01, 0.3, 1.0])
def test_gap_bytes_are_one_of_many_ways_to_write_the_same_indices(ratio):
    gradient = np.random.default_rng(0).normal(size=30000).astype("float32")
    for value in (gradient, np.sort(gradient)):
        np.testing.assert_array_equal(
            DeepReduce(TopK(ratio), "gap_bytes", "float32")(value), DeepReduce(TopK(ratio), "rice", "float32")(value)
        )


def test_signs_of_every_gradient_of_a_bucket_shrink_its_error():
    values = tf.RaggedTensor.from_row_splits(np.concatenate(gradients_of(0)), tf.constant([0, 3000, 3000, 8000, 8040], tf.int64))
    code, sent = Signs().encode(values, *tf.zeros([2], tf.int64))
    np.testing.assert_array_equal(Signs().decode(code, values.row_lengths()).values, sent.values)
    assert code.row_splits.numpy().tolist() == [0, 3004, 3008, 8012, 8056]
    for row in (0, 2, 3):
        assert np.linalg.norm(sent[row] - values[row]) < 0.9 * np.linalg.norm(values[row])


def test_gradients_of_the_largest_numbers_stay_finite():
    gradient = np.float32([3e38, -3e38, 1e38, 1, *np.zeros(100)])
    received = DeepReduce(AboveDeviation(), "gap_bytes", "signs", min_size=0)(gradient).numpy()
    assert np.isfinite(received).all() and np.count_nonzero(received) == 3


def test_ranks_that_differ_in_an_argument_of_an_inner_stage_are_refused():
    compression = DeepReduce(value=Deflate(QSGD(bits=4 + RANK)), min_size=0)
    with pytest.raises(tf.errors.DataLossError, match=r"rank . does not match .* another configuration"):
        exchange(compression, [tf.ones(100)], [tf.Variable(tf.ones(100))])


def test_a_gradient_that_is_not_finite_stays_so_for_all_ranks():
    compression = DeepReduce(AboveDeviation(), "gap_bytes", "signs", min_size=0)
    gradient = np.ones(100, "float32")
    gradient[7] = np.nan if RANK == 1 else 1
    (received,) = exchange(compression, [tf.constant(gradient)], [tf.Variable(gradient)])
    assert not np.isfinite(received).all()


def test_ranks_agree_to_the_bit_and_nothing_is_lost_in_50_steps_of_noise(assert_equal_on_both_ranks):
    compressions = [
        DeepReduce(sparsifier, index, value, min_size=0)
        for sparsifier, index, value in (
            (AboveDeviation(), "gap_bytes", "signs"),
            (AboveDeviation(), "rice", "qsgd"),
            (TopK(0.1), "gap_bytes", "float32"),
            (TopK(0.1), "rice", "signs"),
            (TopK(0.1), "rice", Deflate("signs")),
        )
    ]
    variables = [tf.Variable(tf.zeros(shape)) for shape in SHAPES[:4]]
    bits, *sums = run_noise(compressions, variables, steps=50)
    assert_equal_on_both_ranks(bits)
    for compression, ratio in assert_nothing_is_lost(compressions, *sums, steps=50):
        assert ratio < 10, compression
