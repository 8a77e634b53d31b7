"""`tf.compat.v1` optimizers in plain and monitored sessions."""

import horovod.tensorflow as hvd
import linear_model
import numpy as np
import pytest
import tensorflow as tf

RANK = hvd.rank()
v1 = tf.compat.v1


def training_graph(compression, **options):
    x, y = linear_model.data(RANK)
    weights = v1.get_variable("weights", initializer=tf.constant(linear_model.WEIGHTS.astype("float32") + RANK), use_resource=True)
    loss = tf.reduce_mean((tf.constant(x) @ weights - y) ** 2)
    optimizer = hvd.DistributedOptimizer(v1.train.GradientDescentOptimizer(0.1), compression=compression, **options)
    step = optimizer.minimize(loss, global_step=v1.train.get_or_create_global_step())
    return weights, step


def test_a_plain_session_trains_on_the_data_of_both_ranks(compression, tolerance, assert_equal_on_both_ranks):
    with tf.Graph().as_default(), v1.Session() as session:
        weights, step = training_graph(compression)
        broadcast = hvd.broadcast_global_variables(0)
        session.run([v1.global_variables_initializer(), v1.local_variables_initializer()])
        session.run(broadcast)
        for _ in range(4):
            session.run(step)
        result = session.run(weights)
    np.testing.assert_allclose(result, linear_model.train([0, 1], 4), atol=tolerance)
    assert np.abs(result - linear_model.train([RANK], 4)).max() > 0.01
    assert_equal_on_both_ranks(result)


def test_a_monitored_session_with_the_broadcast_hook_does_too(compression, tolerance, assert_equal_on_both_ranks):
    with tf.Graph().as_default():
        weights, step = training_graph(compression)
        with v1.train.MonitoredTrainingSession(hooks=[hvd.BroadcastGlobalVariablesHook(0)]) as session:
            for _ in range(4):
                session.run(step)
            result = session.run(weights)
    np.testing.assert_allclose(result, linear_model.train([0, 1], 4), atol=tolerance)
    assert_equal_on_both_ranks(result)


@pytest.mark.parametrize(("average", "passes"), [(False, 2.0), (True, 1.0)])
def test_backward_passes_are_accumulated_before_one_exchange(compression, average, passes):
    with tf.Graph().as_default(), v1.Session() as session:
        weights = v1.get_variable("weights", initializer=tf.constant([0.0]), use_resource=True)
        optimizer = hvd.DistributedOptimizer(
            v1.train.GradientDescentOptimizer(1.0),
            compression=compression,
            backward_passes_per_step=2,
            average_aggregated_gradients=average,
        )
        step = optimizer.minimize(tf.reduce_sum(weights) * (1.0 + 2.0 * RANK))
        session.run([v1.global_variables_initializer(), v1.local_variables_initializer()])
        for _ in range(4):
            session.run(step)
        assert session.run(weights).tolist() == [-4.0 * passes]


@pytest.mark.parametrize(("op", "expected"), [(hvd.Average, -2.0), (hvd.Sum, -4.0)])
def test_gradients_1_and_3_give_2_averaged_and_4_summed(compression, op, expected):
    with tf.Graph().as_default(), v1.Session() as session:
        weights = v1.get_variable("weights", initializer=tf.constant([0.0]), use_resource=True)
        optimizer = hvd.DistributedOptimizer(v1.train.GradientDescentOptimizer(1.0), compression=compression, op=op)
        step = optimizer.minimize(tf.reduce_sum(weights) * (1.0 + 2.0 * RANK))
        session.run([v1.global_variables_initializer(), v1.local_variables_initializer()])
        session.run(step)
        assert session.run(weights).tolist() == [expected]
