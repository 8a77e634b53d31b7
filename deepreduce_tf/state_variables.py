"""Variables of a compressor: residuals, counters and metrics, out of reach of what manages a model's variables."""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf
from tensorflow.python.ops.resource_variable_ops import ResourceVariable

COLLECTION = "deepreduce"


def make_variable(name: str, shape: Sequence[int] | tf.TensorShape, dtype: tf.DType, value: int = 0) -> tf.Variable:
    """A variable, filled with `value`, that no creator scope, broadcast or Saver takes hold of.

    tf.function's creator scope reaches even into `tf.init_scope`, and would tie the variable to one trace; so the class is called directly.
    In a TF1-style graph the variable lives in a collection of its own; `initialize` gives it its value in a session.
    """
    with tf.init_scope(), tf.device("CPU"):
        return ResourceVariable(tf.cast(tf.fill(shape, value), dtype), trainable=False, name=name, collections=[COLLECTION])


def initialize(variables: Sequence[tf.Variable]) -> list[tf.Tensor]:
    """Ops that set variables of a TF1-style graph to zero once per session. Eager variables need none."""

    def zero(variable: tf.Variable) -> tf.Tensor:
        with tf.control_dependencies(
            [tf.raw_ops.AssignVariableOp(resource=variable.handle, value=tf.zeros(variable.shape, variable.dtype))]
        ):
            return tf.constant(True)

    return [
        tf.cond(variable.is_initialized(), lambda: tf.constant(True), lambda variable=variable: zero(variable))
        for variable in variables
        if variable._in_graph_mode
    ]


def owner_of_variables(graph: tf.Graph | None = None) -> str:
    """The name of what variables belong to: to a TF1-style graph, `graph` or the one being built; all others to the process."""
    with tf.init_scope():
        if graph is None and tf.executing_eagerly():
            return "process"
        return f"graph_{id(graph or tf.compat.v1.get_default_graph())}"
