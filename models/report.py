"""What a training run sent, as a table for people and as one line of JSON for programs."""

from __future__ import annotations

import dataclasses
import hashlib
import json

import horovod.tensorflow as hvd
import keras
import numpy as np
import rich.console
import rich.table
import tensorflow as tf

from deepreduce_tf import DeepReduce

FLOAT_BYTES = 4


@dataclasses.dataclass(frozen=True)
class Metrics:
    """The metrics of one run; None where one does not apply, as with one rank, which exchanges nothing.

    Attributes:
        accuracy: share of the test images that are classified rightly.
        relative_volume: bytes sent, small dense gradients included, over the bytes of the whole gradient in float32.
        relative_to_pairs: the same bytes over those of raw (int32 index, float32 value) pairs, small dense gradients included.
        bits_per_index, bits_per_value: code bits for each element that was kept.
        index_bound: log2 C(d, r) / r, the fewest bits per index that tell any r of d indices apart.
        bytes_per_step: bytes that one rank hands to the exchange in a step.
        encode_ms, exchange_ms, decode_ms: milliseconds per step and rank; the exchange includes waiting for the slowest rank.
    """

    accuracy: float
    relative_volume: float | None
    relative_to_pairs: float | None
    bits_per_index: float | None
    index_bound: float | None
    bits_per_value: float | None
    bytes_per_step: float | None
    encode_ms: float | None
    exchange_ms: float | None
    decode_ms: float | None

    def to_json(self) -> str:
        """One line of JSON."""
        return json.dumps({key: value if value is None else round(value, 6) for key, value in dataclasses.asdict(self).items()})


def dense_metrics(accuracy: float, model: keras.Model, bytes_per_value: int) -> Metrics:
    """Metrics of a run that exchanged every gradient element as a float of `bytes_per_value` bytes."""
    elements = sum(int(np.prod(v.shape)) for v in model.trainable_weights)
    sent = float(elements * bytes_per_value)
    return Metrics(accuracy, bytes_per_value / FLOAT_BYTES, None, None, None, None, sent, None, None, None)


def compressed_metrics(accuracy: float, compression: DeepReduce) -> Metrics:
    """Metrics of a run that exchanged through `compression`, over all ranks. Every rank has to call this."""
    stats = {key: float(value) for key, value in compression.stats().items()}
    names = sorted(stats)
    sums = hvd.allreduce(tf.constant([stats[name] for name in names], tf.float64), name="stats", op=hvd.Sum).numpy()
    total = dict(zip(names, sums.tolist(), strict=True))
    sent = total["payload_bytes"] + total["small_bytes"]
    return Metrics(
        accuracy=accuracy,
        relative_volume=_ratio(sent, total["dense_bytes"]),
        relative_to_pairs=_ratio(sent, total["pair_bytes"]),
        bits_per_index=_ratio(total["index_bits"], total["indices"]),
        index_bound=_ratio(total["bound_bits"], total["indices"]),
        bits_per_value=_ratio(total["value_bits"], total["indices"]),
        bytes_per_step=_ratio(sent, total["steps"]),
        encode_ms=_ratio(1e3 * total["encode_seconds"], total["steps"]),
        exchange_ms=_ratio(1e3 * total["exchange_seconds"], total["steps"]),
        decode_ms=_ratio(1e3 * total["decode_seconds"], total["steps"]),
    )


def print_table(title: str, metrics: Metrics, seconds: float) -> None:
    """Prints the metrics and the seconds of training."""
    table = rich.table.Table(title=title, show_header=False)
    rows = (
        ("test accuracy", f"{100 * metrics.accuracy:.2f} %"),
        ("bytes sent per step and rank", _number(metrics.bytes_per_step, digits=0)),
        ("relative volume, against dense float32", _percent(metrics.relative_volume)),
        ("relative volume, against raw (index, value) pairs", _percent(metrics.relative_to_pairs)),
        ("bits per index", _number(metrics.bits_per_index)),
        ("log2 C(d, r) / r, the bound of bits per index", _number(metrics.index_bound)),
        ("bits per value", _number(metrics.bits_per_value)),
        ("encode, ms per step", _number(metrics.encode_ms)),
        ("exchange, ms per step", _number(metrics.exchange_ms)),
        ("decode, ms per step", _number(metrics.decode_ms)),
        ("training", f"{seconds:.0f} s"),
    )
    table.add_column()
    table.add_column(justify="right")
    for row in rows:
        table.add_row(*row)
    rich.console.Console(width=100).print(table)


def differing_weights(model: keras.Model) -> list[str]:
    """Paths of the weights that are not the same, bit for bit, on every rank. Every rank has to call this."""
    digests = [hashlib.sha256(weight.numpy().tobytes()).hexdigest() for weight in model.weights]
    per_rank = hvd.allgather_object(digests)
    return [weight.path for weight, *found in zip(model.weights, *per_rank, strict=True) if len(set(found)) > 1]


def _ratio(part: float, whole: float) -> float | None:
    return part / whole if whole else None


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.2f} %"


def _number(value: float | None, digits: int = 2) -> str:
    return "-" if value is None else f"{value:,.{digits}f}"
