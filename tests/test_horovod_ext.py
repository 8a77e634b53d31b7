"""What `horovod_ext` does without other ranks: how it gets into Horovod, and a world of one."""

import importlib
import types

import horovod._keras
import horovod.tensorflow as hvd
import horovod.tensorflow.keras as hvd_tensorflow_keras
import keras
import numpy as np
import pytest
import tensorflow as tf

import horovod_ext
from deepreduce_tf import DeepReduce
from horovod_ext import indexed_slices, once
from horovod_ext.patches.patching import replace


@pytest.fixture(scope="module", autouse=True)
def world_of_one():
    hvd.init()


def test_a_missing_function_is_an_error_that_names_it():
    with pytest.raises(ImportError, match=r"package\.exchange\(tensor, name\), which this version does not have.*horovod 0\.28\.1"):
        replace(types.ModuleType("package"), "exchange", ["tensor", "name"], lambda stock: stock)


def test_a_function_with_other_parameters_is_an_error_that_shows_both():
    package = types.ModuleType("package")
    package.exchange = lambda tensor, other: None
    with pytest.raises(ImportError, match=r"package\.exchange\(tensor, name\)\. Received: package\.exchange\(tensor, other\)"):
        replace(package, "exchange", ["tensor", "name"], lambda stock: stock)


def test_installing_twice_changes_nothing():
    def installed():
        return [
            hvd._make_allreduce_grads_fn,
            hvd._DistributedGradientTape.gradient,
            hvd.allreduce,
            hvd.broadcast_variables,
            hvd.DistributedOptimizer,
            horovod._keras.create_distributed_optimizer,
            keras.Model._resolve_auto_jit_compile,
            keras.optimizers.LossScaleOptimizer.check_finite,
            hvd.BroadcastGlobalVariablesHook,
        ]

    before = installed()
    importlib.reload(horovod_ext)
    assert all(a is b for a, b in zip(installed(), before, strict=True))


def test_replaced_functions_keep_the_signature_and_documentation_of_stock():
    assert list(importlib.import_module("inspect").signature(hvd.allreduce).parameters)[:2] == ["tensor", "average"]
    assert "IndexedSlices" in hvd.allreduce.__doc__


def test_merging_sums_duplicate_ids_and_sorts_them():
    values, ids = tf.constant([[1.0], [2.0], [4.0]]), tf.constant([7, 2, 7], tf.int64)
    merged = indexed_slices.merge(tf.IndexedSlices(values, ids, tf.constant([9, 1])))
    assert merged.indices.dtype == tf.int64
    assert merged.indices.numpy().tolist() == [2, 7]
    assert merged.values.numpy().tolist() == [[2.0], [5.0]]


def test_merging_nothing_gives_nothing():
    merged = indexed_slices.merge(tf.IndexedSlices(tf.zeros([0, 3]), tf.zeros([0], tf.int32), tf.constant([9, 3])))
    assert merged.values.shape == (0, 3)


def test_duplicate_ids_count_once_in_a_world_of_one():
    table, reference = keras.Variable(np.zeros((4, 1), "float32")), keras.Variable(np.zeros((4, 1), "float32"))
    distributed, plain = hvd.DistributedOptimizer(keras.optimizers.Adagrad(0.1)), keras.optimizers.Adagrad(0.1)
    gradient = tf.IndexedSlices(tf.constant([[1.0], [2.0]]), tf.constant([3, 3]), tf.constant([4, 1]))
    for _ in range(2):
        distributed.apply([gradient], [table])
        plain.apply([tf.convert_to_tensor(gradient)], [reference])
    np.testing.assert_allclose(table, reference, rtol=1e-6)


@pytest.mark.parametrize("compression", [DeepReduce, "deepreduce"], ids=["class", "name"])
def test_a_class_or_a_name_is_refused_where_a_compression_is_expected(compression):
    for use in (
        lambda: hvd.DistributedOptimizer(keras.optimizers.SGD(1.0), compression=compression),
        lambda: hvd_tensorflow_keras.DistributedOptimizer(keras.optimizers.SGD(1.0), compression=compression),
        lambda: hvd.DistributedGradientTape(tf.GradientTape(), compression=compression),
        lambda: hvd.allreduce(tf.ones(3), compression=compression),
        lambda: hvd.grouped_allreduce([tf.ones(3)], compression=compression),
    ):
        with pytest.raises(ValueError, match=r"a compressor object, like DeepReduce\(\). Received: "):
            use()


def test_a_nameless_tensor_is_reduced_with_one_warning_that_points_at_the_call(monkeypatch):
    monkeypatch.setattr(once, "_shown", set())
    with pytest.warns(UserWarning, match="has no error feedback") as caught:
        for _ in range(2):
            hvd.allreduce(tf.ones(3), compression=DeepReduce())
    assert [warning.filename for warning in caught] == [__file__]
