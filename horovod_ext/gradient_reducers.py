"""What optimizers and tapes reduce their gradients with: one class for compressions that gather, one for those of stock Horovod.

A reducer is called with lists of gradients and of variables, and returns the reduced gradients, `tf.IndexedSlices` among them merged. On a
rank outside the process set it returns what the rank has.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import horovod.tensorflow as hvd
import tensorflow as tf
from horovod.common.util import split_list

from horovod_ext import indexed_slices, messages, xla
from horovod_ext.contract import Gradient, check_op
from horovod_ext.exchange import exchange
from horovod_ext.gather_compressor import GatherCompressor, gathers
from horovod_ext.keras_version import tensorflow_variable


def check_options(compression: Any, op: object, gradient_predivide_factor: float) -> None:
    """Raises a ValueError for options of `hvd.DistributedOptimizer` that contradict each other."""
    if gathers(compression):
        check_op(op)
    if gradient_predivide_factor != 1.0 and op != hvd.Average:
        raise ValueError(
            f"gradient_predivide_factor splits an average into two divisions; it needs op=hvd.Average. Received: "
            f"gradient_predivide_factor={gradient_predivide_factor} with another op. Leave it at 1.0."
        )


@dataclasses.dataclass(eq=False)
class GatheringReducer:
    """Reduces gradients by `exchange`.

    Attributes:
        name: names the ops.
        compression and the rest: as for `hvd.DistributedOptimizer`.

    Raises:
        ValueError: for an `op` that gathered payloads cannot be reduced with.
    """

    name: str
    compression: GatherCompressor
    sparse_as_dense: bool
    op: object
    gradient_predivide_factor: float
    process_set: hvd.ProcessSet

    def __post_init__(self) -> None:
        check_op(self.op)

    def __call__(self, grads: Sequence[Gradient | None], vars: Sequence[Any] | None = None, use_generic_names: bool = False) -> list:
        """Named and called like the function that stock Horovod makes. Names of messages never come from variables here."""
        xla.refuse(self.name)
        if not _takes_part(self.process_set):
            return [indexed_slices.merged(gradient) for gradient in grads]
        variables = [None] * len(grads) if vars is None else [_state_key(variable) for variable in vars]
        before, after = _predivision(self.op, self.gradient_predivide_factor)
        with tf.name_scope(f"{self.name}_Exchange"):
            return exchange(
                self.compression,
                list(grads),
                variables,
                op=self.op,
                prescale_factor=before,
                postscale_factor=after,
                process_set=self.process_set,
                sparse_as_dense=self.sparse_as_dense,
            )


@dataclasses.dataclass(eq=False)
class DenseReducer:
    """Reduces gradients of Keras 3 variables by Horovod's own all-reduce, and gathers their slices, under names at which all ranks arrive.

    Stock Horovod names a message after the tensor. Keras 3 puts numbers into those names that count what a process has built: a rank that
    built one model more than the others would wait for them for ever.

    Attributes:
        name: names the ops.
        device_dense and the rest: as for `hvd.DistributedOptimizer`.
    """

    name: str
    device_dense: str
    device_sparse: str
    compression: Any
    sparse_as_dense: bool
    op: object
    gradient_predivide_factor: float
    groups: int | list | None
    process_set: hvd.ProcessSet

    def __call__(self, gradients: Sequence[Gradient], variables: Sequence[tf.Variable]) -> list[Gradient]:
        if not _takes_part(self.process_set):
            return [indexed_slices.merged(gradient) for gradient in gradients]
        label = messages.exchange_name(self, variables, [variable.shape for variable in variables], self.process_set)
        before, after = _predivision(self.op, self.gradient_predivide_factor)
        results = [tf.convert_to_tensor(g) if self.sparse_as_dense else indexed_slices.merged(g) for g in gradients]
        dense = [i for i, gradient in enumerate(results) if not isinstance(gradient, tf.IndexedSlices)]
        with tf.name_scope(f"{self.name}_Allreduce"):
            for number, positions in enumerate(_grouped(dense, variables, self.groups)):
                reduced = hvd.grouped_allreduce(
                    [messages.unfoldable(results[i]) for i in positions],
                    device_dense=self.device_dense,
                    compression=self.compression,
                    op=self.op,
                    prescale_factor=before,
                    postscale_factor=after,
                    process_set=self.process_set,
                    name=f"HorovodAllreduce_{label}_{number}",
                    ignore_name_scope=True,
                )
                for i, gradient in zip(positions, reduced, strict=True):
                    results[i] = gradient
            for i, gradient in enumerate(results):
                if isinstance(gradient, tf.IndexedSlices):
                    with tf.device(self.device_sparse):
                        results[i] = self._gather(gradient, f"HorovodAllgather_{label}_{i}")
        return results

    def _gather(self, slices: tf.IndexedSlices, name: str) -> tf.IndexedSlices:
        values, indices = (
            hvd.allgather(messages.unfoldable(tensor), name=f"{name}_{part}", ignore_name_scope=True, process_set=self.process_set)
            for part, tensor in (("values", slices.values), ("indices", slices.indices))
        )
        if self.op == hvd.Average:
            values /= tf.cast(hvd.size_op(self.process_set.process_set_id), values.dtype)
        return indexed_slices.merge(tf.IndexedSlices(values, indices, slices.dense_shape))


def _takes_part(process_set: hvd.ProcessSet) -> bool:
    return process_set is hvd.global_process_set or process_set.included()


def _predivision(op: object, factor: float) -> tuple[float, float]:
    """What multiplies before and after the sum. Only an average has a division to split between the two."""
    return (1.0 / factor, factor) if op == hvd.Average else (1.0, 1.0)


def _state_key(variable: object) -> object:
    """What the compressor's state is kept by. A tape may be asked for the gradient of a tensor, which does not outlive the step."""
    variable = tensorflow_variable(variable)
    return variable if isinstance(variable, tf.Variable) else None


def _grouped(positions: list[int], variables: Sequence[tf.Variable], groups: int | list | None) -> list[list[int]]:
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
