"""Direct calls with a compressor that gathers, and the contract that it also has alone."""

import warnings

import horovod.keras as hvd_keras
import horovod.tensorflow as hvd
import horovod.tensorflow.keras as hvd_tensorflow_keras
import numpy as np
import pytest
import tensorflow as tf
from whole_compressor import Whole

from horovod_ext import once

RANK = hvd.rank()
MINE = [1.0 + 2.0 * RANK, 10.0]


@pytest.mark.parametrize(("op", "expected"), [(hvd.Average, [2.0, 10.0]), (hvd.Sum, [4.0, 20.0])])
def test_allreduce_averages_and_sums(path, compression, op, expected):
    assert np.asarray(path.allreduce(tf.constant(MINE), op=op, compression=compression)).tolist() == expected


def test_allreduce_averages_without_an_op(path, compression):
    assert np.asarray(path.allreduce(tf.constant(MINE), compression=compression)).tolist() == [2.0, 10.0]


@pytest.mark.parametrize("eager", [True, False])
@pytest.mark.parametrize("dtype", [tf.float16, tf.bfloat16, tf.float32, tf.float64])
@pytest.mark.parametrize("op", [hvd.Average, hvd.Sum])
def test_pre_and_postscale_are_exact(eager, dtype, op):
    compression = Whole()
    call = lambda: hvd.allreduce(  # noqa: E731
        tf.constant(MINE, dtype), op=op, compression=compression, prescale_factor=0.5, postscale_factor=8.0, name="scaled"
    )
    result = call() if eager else tf.function(call)()
    assert result.dtype == dtype
    assert result.numpy().astype("float64").tolist() == ([8.0, 40.0] if op == hvd.Average else [16.0, 80.0])


def test_a_name_reaches_the_compressor(path):
    compression = Whole()
    path.allreduce(tf.constant(MINE), name="my_tensor", compression=compression)
    assert compression.owners == [["my_tensor"]]


def test_grouped_allreduce_gathers_once(compression):
    results = hvd.grouped_allreduce([tf.constant(MINE), tf.constant([[2.0 * RANK]])], op=hvd.Sum, compression=compression, name="group")
    assert [r.numpy().tolist() for r in results] == [[4.0, 20.0], [[2.0]]]
    if isinstance(compression, Whole):
        assert compression.owners == [["group_0", "group_1"]]
        assert len(compression.labels) == 1


def test_slices_are_reduced(compression):
    slices = tf.IndexedSlices(tf.constant([[1.0], [2.0]]), tf.constant([RANK, 3]), tf.constant([4, 1]))
    result = hvd.allreduce(slices, op=hvd.Sum, compression=compression)
    assert tf.convert_to_tensor(result).numpy().ravel().tolist() == [1.0, 1.0, 0.0, 4.0]


def test_only_members_of_the_process_set_exchange(only_rank_0):
    result = hvd.allreduce(tf.constant(MINE), compression=Whole(), process_set=only_rank_0)
    assert result.numpy().tolist() == MINE


@pytest.mark.parametrize("op", [hvd.Adasum, hvd.Min, hvd.Max, hvd.Product])
def test_other_reductions_are_refused(op):
    for call in (lambda **k: hvd.allreduce(tf.constant(MINE), **k), lambda **k: hvd.grouped_allreduce([tf.constant(MINE)], **k)):
        with pytest.raises(ValueError, match=r"op=hvd.Average.*Received: op=hvd\."):
            call(op=op, compression=Whole())


def test_other_collectives_are_refused():
    with pytest.raises(ValueError, match=r"Received: hvd\.reducescatter"):
        hvd.reducescatter(tf.constant(MINE), compression=Whole())
    with pytest.raises(ValueError, match=r"Received: hvd\.grouped_reducescatter"):
        hvd.grouped_reducescatter([tf.constant(MINE)], compression=Whole())


def test_integers_are_refused():
    with pytest.raises(ValueError, match="int32"):
        hvd.allreduce(tf.constant([1, 2]), compression=Whole())


def test_stock_reductions_are_as_they_were():
    assert hvd.allreduce(tf.constant(MINE), op=hvd.Max).numpy().tolist() == [3.0, 10.0]
    for path in (hvd_keras, hvd_tensorflow_keras):
        assert np.asarray(path.allreduce(MINE)).tolist() == [2.0, 10.0]
    assert hvd.reducescatter(tf.constant(MINE), op=hvd.Sum).shape == (1,)


@pytest.mark.parametrize("eager", [True, False])
@pytest.mark.parametrize("dtype", [tf.float16, tf.float32, tf.float64])
@pytest.mark.parametrize(("op", "factor"), [(hvd.Average, 1.0), (hvd.Sum, 2.0)])
def test_a_reference_taken_before_our_import_works_through_compress(stock_allreduce, eager, dtype, op, factor):
    compression = Whole()
    call = lambda: stock_allreduce(  # noqa: E731
        tf.constant(MINE, dtype), op=op, compression=compression, prescale_factor=0.5, postscale_factor=8.0, name="alone"
    )
    result = call() if eager else tf.function(call)()
    assert result.dtype == dtype
    assert result.numpy().tolist() == [2.0 * 4 * factor, 10.0 * 4 * factor]


def test_compress_alone_warns_once(monkeypatch):
    monkeypatch.setattr(once, "_shown", set())
    compression = Whole()
    with pytest.warns(UserWarning, match="no error feedback"):
        one, context = compression.compress(tf.constant(MINE))
    assert one.shape == () and float(one) == 1.0
    assert compression.decompress(one * 2, context).numpy().tolist() == [4.0, 20.0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compression.compress(tf.constant(MINE))


def test_compress_passes_integers_through():
    tensor, context = Whole().compress(tf.constant([1, 2]))
    assert Whole().decompress(tensor, context).numpy().tolist() == [1, 2]
