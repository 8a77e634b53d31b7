"""Horovod's ops cannot run inside XLA; says so while the step is traced, with the fix."""

from __future__ import annotations

import os

import tensorflow as tf
from tensorflow.python.ops import control_flow_util


def refuse(what: str, *, stock_ops: bool = False) -> None:
    """Raises a ValueError if the code being traced will be compiled by XLA.

    Args:
        what: the caller, for the message.
        stock_ops: whether only ops of Horovod are used, which a Horovod built with HOROVOD_ENABLE_XLA_OPS can compile.
    """
    if stock_ops and os.environ.get("HOROVOD_ENABLE_XLA_OPS", "0") == "1":
        return
    if control_flow_util.GraphOrParentsInXlaContext(tf.compat.v1.get_default_graph()):
        raise ValueError(
            f"{what} exchanges gradients with Horovod ops, which XLA cannot compile. Received: jit_compile=True. "
            "Use model.compile(..., jit_compile=False) or tf.function(..., jit_compile=False)."
        )
