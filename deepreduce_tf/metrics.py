"""What a compressor exchanged, added up over all exchanges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import tensorflow as tf

from deepreduce_tf.state_variables import initialize, make_variable, owner_of_variables

# Outputs of FramePack, of each bucket.
FRAME_METRICS = ("payload_bytes", "indices", "index_bits", "value_bits", "bound_bits")
# Of each exchange.
EXCHANGE_METRICS = ("small_bytes", "dense_bytes", "encode_seconds", "exchange_seconds", "decode_seconds")
_NAMES = ("steps", *FRAME_METRICS, *EXCHANGE_METRICS)


class Metrics(tf.__internal__.tracking.AutoTrackable):
    """One variable of totals for the process, and one for each TF1-style graph."""

    def __init__(self) -> None:
        super().__init__()
        self._totals: dict[str, tf.Variable] = {}

    def add(self, frames: Sequence[Mapping[str, tf.Tensor]], exchange: Mapping[str, tf.Tensor]) -> tf.Operation:
        """Counts an exchange.

        Args:
            frames: for each bucket a scalar float64 for each name in `FRAME_METRICS`.
            exchange: a scalar float64 for each name in `EXCHANGE_METRICS`.
        """
        zero = tf.zeros([], tf.float64)
        sums = [tf.add_n([zero, *(frame[name] for frame in frames)]) for name in FRAME_METRICS]
        step = tf.stack([tf.ones([], tf.float64), *sums, *(exchange[name] for name in EXCHANGE_METRICS)])
        total = self._total()
        with tf.control_dependencies(initialize([total])):
            return total.assign_add(step, read_value=False)

    def read(self, session: tf.compat.v1.Session | None = None) -> dict[str, float]:
        """The totals by name; of the graph of `session`, if there is one."""
        if session is None:
            return self._named(self._total().numpy())
        try:
            return self._named(session.run(self._totals[owner_of_variables(session.graph)]))
        except (KeyError, tf.errors.FailedPreconditionError):  # nothing was exchanged in this graph, or in this session
            return dict.fromkeys(_NAMES, 0.0)

    def _total(self) -> tf.Variable:
        owner = owner_of_variables()
        if owner not in self._totals:
            self._totals[owner] = make_variable("metrics", [len(_NAMES)], tf.float64)
        return self._totals[owner]

    @staticmethod
    def _named(values: Sequence[float]) -> dict[str, float]:
        return dict(zip(_NAMES, map(float, values), strict=True))
