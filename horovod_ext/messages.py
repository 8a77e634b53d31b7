"""What makes the messages of different ranks meet.

A message meets the messages of the same name on the other ranks. The names must therefore be the same on all of them even when one built
or traced something else before, must differ between exchanges that may be under way together, and must begin with the name of Horovod's
op, by which its elastic mode knows a failed exchange.

Horovod's ops are stateless to TensorFlow, which computes one with a constant input ahead, merges two with equal inputs, and removes one
whose result is not used. When that happens on some ranks only, the others wait for them.
"""

from __future__ import annotations

import re
import weakref
import zlib
from collections.abc import Sequence

import horovod.tensorflow as hvd
import tensorflow as tf

# crc32 of the shapes -> number of exchanges of that kind so far
_used: dict[int, int] = {}
_names: dict[tuple, str] = {}


def exchange_name(
    owner: object,
    slots: Sequence[object],
    shapes: Sequence[tf.TensorShape],
    process_set: hvd.ProcessSet = hvd.global_process_set,
) -> str:
    """The name of the exchange of these slots: always the same for the same `owner` and slots, the n-th of its shapes on every rank.

    Each process set counts for itself: ranks outside it do not take part, and would be behind in a common count.
    """
    ranks = "" if process_set is hvd.global_process_set else f" of ranks {process_set.ranks}"
    crc = zlib.crc32((";".join(str(shape) for shape in shapes) + ranks).encode())
    # Texts by value: two equal ones may be one object on one rank and two on another.
    key = (id(owner), tuple(slot if slot is None or isinstance(slot, str) else id(slot) for slot in slots), crc)
    if key not in _names:
        n = _used.get(crc, 0)
        _used[crc] = n + 1
        _names[key] = f"{crc:08x}_{n}"
        for held in (owner, *(slot for slot in slots if hasattr(slot, "__weakref__"))):
            weakref.finalize(held, _names.pop, key, None)
    return _names[key]


def leaf_name(variable: object) -> str:
    """The part of a variable's name that does not come from a counter of the process: `dense_12/kernel:0` gives `kernel`."""
    name = variable if isinstance(variable, str) else getattr(variable, "name", "") or ""
    return re.sub(r"_\d+$", "", name.split("/")[-1].split(":")[0])


def unfoldable(tensor: tf.Tensor) -> tf.Tensor:
    """The same tensor, as one whose value TensorFlow does not know: neither computed ahead nor merged with an equal one."""
    return tf.compat.v1.placeholder_with_default(tensor, tensor.shape)


def keep(condition: tf.Tensor) -> tf.Operation:
    """An op with a side effect, so that TensorFlow keeps what it depends on, used or not.

    Args:
        condition: a boolean made of what was received, true in any case.
    """
    return tf.raw_ops.Assert(condition=condition, data=[condition])
