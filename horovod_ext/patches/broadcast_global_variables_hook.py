"""`horovod.tensorflow.BroadcastGlobalVariablesHook` of `tf.compat.v1` sessions, which Horovod lacks where there is no tf.estimator."""

from __future__ import annotations

import horovod.tensorflow as hvd
import tensorflow as tf


class BroadcastGlobalVariablesHook(tf.compat.v1.train.SessionRunHook):
    """Gives every rank the root rank's global variables once a session has been created.

    Args:
        root_rank: the rank whose values are taken.
        device: device of the broadcast ops.
    """

    def __init__(self, root_rank: int, device: str = ""):
        self.root_rank = root_rank
        self.device = device
        self._broadcast: tf.Operation | None = None

    def begin(self) -> None:
        """Adds the broadcast to the graph before it is finalized."""
        if self._broadcast is None or self._broadcast.graph is not tf.compat.v1.get_default_graph():
            with tf.device(self.device):
                self._broadcast = hvd.broadcast_global_variables(self.root_rank)

    def after_create_session(self, session: tf.compat.v1.Session, coord: object) -> None:
        """Runs it, after variables were initialized or restored."""
        session.run(self._broadcast)


def install() -> None:
    if not hasattr(hvd, "BroadcastGlobalVariablesHook"):
        hvd.BroadcastGlobalVariablesHook = BroadcastGlobalVariablesHook
