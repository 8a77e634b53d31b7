"""Horovod's own reductions for Keras 3, under names at which all ranks arrive.

Stock Horovod names a message after the tensor. Keras 3 puts numbers into those names that count what a process has built: a rank that built
one model more than the others would wait for them for ever.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import horovod.tensorflow as hvd
import tensorflow as tf
from horovod.common.util import split_list

from horovod_ext.keras_version import tensorflow_variable
from horovod_ext.names import exchange_name


def reducer(
    name: str,
    device_dense: str,
    device_sparse: str,
    compression: Any,
    sparse_as_dense: bool,
    op: object,
    gradient_predivide_factor: float,
    groups: int | list | None,
    process_set: hvd.ProcessSet,
) -> Callable[[list, list], list]:
    """Makes a function that reduces gradients of variables. Arguments as for `hvd._make_allreduce_grads_fn`."""
    # Only an average has a division to split between before and after the sum.
    predivide = gradient_predivide_factor if op == hvd.Average else 1.0

    def reduce(gradients: list, variables: list) -> list:
        if process_set is not hvd.global_process_set and not process_set.included():
            return gradients
        label = exchange_name(reduce, variables, [variable.shape for variable in variables], process_set)
        results = [tf.convert_to_tensor(g) if sparse_as_dense and isinstance(g, tf.IndexedSlices) else g for g in gradients]
        dense = [i for i, gradient in enumerate(results) if not isinstance(gradient, tf.IndexedSlices)]
        with tf.name_scope(f"{name}_Allreduce"):
            for number, positions in enumerate(_grouped(dense, variables, groups)):
                reduced = hvd.grouped_allreduce(
                    [unfoldable(results[i]) for i in positions],
                    device_dense=device_dense,
                    compression=compression,
                    op=op,
                    prescale_factor=1.0 / predivide,
                    postscale_factor=predivide,
                    process_set=process_set,
                    name=f"HorovodAllreduce_{label}_{number}",
                    ignore_name_scope=True,
                )
                for i, gradient in zip(positions, reduced, strict=True):
                    results[i] = gradient
            for i, gradient in enumerate(results):
                if isinstance(gradient, tf.IndexedSlices):
                    with tf.device(device_sparse):
                        results[i] = _gather(gradient, f"HorovodAllgather_{label}_{i}", op, process_set)
        return results

    return reduce


def unfoldable(tensor: tf.Tensor) -> tf.Tensor:
    """The same tensor, as one that TensorFlow does not know.

    Horovod's ops are stateless to TensorFlow, which therefore computes one with a constant input ahead, and merges two with equal inputs.
    When only some ranks have such inputs, the others wait for them.
    """
    return tf.compat.v1.placeholder_with_default(tensor, tensor.shape)


def _gather(slices: tf.IndexedSlices, name: str, op: object, process_set: hvd.ProcessSet) -> tf.IndexedSlices:
    values = hvd.allgather(unfoldable(slices.values), name=f"{name}_values", ignore_name_scope=True, process_set=process_set)
    indices = hvd.allgather(unfoldable(slices.indices), name=f"{name}_indices", ignore_name_scope=True, process_set=process_set)
    if op == hvd.Average:
        values /= tf.cast(hvd.size_op(process_set.process_set_id), values.dtype)
    return tf.IndexedSlices(values, indices, slices.dense_shape)


def _grouped(positions: list[int], variables: list, groups: int | list | None) -> list[list[int]]:
    """Positions of the gradients that travel together. Groups of variables go by identity: Keras 3 gives many variables one name."""
    if not positions or groups is None:
        return [[position] for position in positions]
    if isinstance(groups, int):
        return [part for part in split_list(positions, groups) if part]
    number = {tensorflow_variable(v).ref(): i for i, group in enumerate(groups) for v in group}
    members: dict[object, list[int]] = {}
    for position in positions:
        members.setdefault(number.get(variables[position].ref(), f"alone {position}"), []).append(position)
    return list(members.values())
