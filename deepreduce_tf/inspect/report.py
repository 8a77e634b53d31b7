"""What was measured of gradients: an order, a summary, JSON for programs."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from deepreduce_tf.inspect.measure import ERROR_CLASSES, PairMetrics, Sample
from deepreduce_tf.stage import serialize

SORT_KEYS: dict[str, Callable[[PairMetrics], float]] = {
    "bytes": lambda pair: pair.bytes,
    "error": lambda pair: pair.relative_error,
    "encode": lambda pair: pair.encode_seconds,
    "decode": lambda pair: pair.decode_seconds,
}


def sort_pairs(pairs: Sequence[PairMetrics], key: str) -> list[PairMetrics]:
    """By class of error; within one by a key of `SORT_KEYS`, then by bytes."""
    return sorted(pairs, key=lambda pair: (pair.error_class, SORT_KEYS[key](pair), pair.bytes, pair.decode_seconds))


def summary(sample: Sample, small: dict[str, np.ndarray]) -> dict[str, Any]:
    """What holds for all pairs, for JSON and the table's title."""
    return {
        "gradients": len(sample.names),
        "elements": len(sample.flat),
        "kept": sample.kept,
        "small_gradients": len(small),
        "small_elements": sum(gradient.size for gradient in small.values()),
        "bound_bits_per_index": sample.bound_bits / max(1, sample.kept),
        "select_ms": 1e3 * sample.select_seconds,
    }


def to_json(facts: dict[str, Any], sample: Sample, pairs: Sequence[PairMetrics], failures: Sequence[str]) -> str:
    """One JSON document: `facts`, all pairs, and the codecs that failed."""
    front = {id(pair) for pair in pareto_front(pairs)}
    rows = [
        {
            "index": serialize(pair.index),
            "value": serialize(pair.value),
            "error_class": ERROR_CLASSES[pair.error_class][1],
            "bits_per_index": pair.bits_per_index,
            "bits_per_value": pair.bits_per_value,
            "index_bytes": pair.index_bytes,
            "value_bytes": pair.value_bytes,
            "bytes": pair.bytes,
            "relative_volume": pair.bytes / (4 * len(sample.flat)),
            "sent": pair.sent,
            "relative_error": pair.relative_error if math.isfinite(pair.relative_error) else None,
            "energy_kept": pair.energy_kept if math.isfinite(pair.energy_kept) else None,
            "encode_ms": 1e3 * pair.encode_seconds,
            "decode_ms": 1e3 * pair.decode_seconds,
            "pareto": id(pair) in front,
        }
        for pair in pairs
    ]
    return json.dumps(facts | {"pairs": rows, "failed": list(failures)}, indent=2, allow_nan=False)


def pareto_front(pairs: Sequence[PairMetrics]) -> list[PairMetrics]:
    """The pairs of which no other one has fewer bytes or a smaller error without more of the other; by bytes.

    None with an error of 1 or more: sending nothing is better.
    """
    front: list[PairMetrics] = []
    smallest_error = 1.0
    for pair in sorted(pairs, key=lambda pair: (pair.bytes, pair.relative_error)):
        as_good = front and (pair.bytes, pair.relative_error) == (front[-1].bytes, front[-1].relative_error)
        if pair.relative_error < smallest_error or as_good:
            front.append(pair)
            smallest_error = pair.relative_error
    return front
