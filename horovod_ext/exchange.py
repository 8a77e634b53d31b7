"""One exchange: buckets, one gather per bucket, commit, decode and add."""

from __future__ import annotations

import os
import weakref
from collections.abc import Hashable, Iterator, Sequence
from typing import Any

import horovod.tensorflow as hvd
import tensorflow as tf
from horovod.tensorflow import mpi_ops

from horovod_ext import buckets, indexed_slices, messages
from horovod_ext.contract import Bucket, BucketCodec, Encoded, ExchangeMetrics, Gradient, check_op


def exchange(
    compression: BucketCodec,
    gradients: Sequence[Gradient | None],
    variables: Sequence[object],
    *,
    op: object = hvd.Average,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: hvd.ProcessSet = hvd.global_process_set,
    sparse_as_dense: bool = False,
) -> list[Gradient | None]:
    """Reduces gradients over all ranks of a process set.

    Args:
        compression: encodes and decodes the payloads.
        gradients: dense tensors, `tf.IndexedSlices` or None, of any float dtype; positions of None are kept.
        variables: for each gradient its `tf.Variable`; a str names a plain tensor; None for a tensor without a name (it has no residual).
        op: `hvd.Average` or `hvd.Sum`.
        prescale_factor: multiplied into the gradients.
        postscale_factor: multiplied into the result.
        process_set: the ranks that take part.
        sparse_as_dense: turn `tf.IndexedSlices` into dense tensors first.

    Returns:
        One reduced gradient per gradient, with its dtype and shape. The ids of `tf.IndexedSlices` are merged and ascending.

    Raises:
        ValueError: for an `op` that is neither Average nor Sum, or gradients that are not floating point.
    """
    check_op(op)
    present = [i for i, gradient in enumerate(gradients) if gradient is not None]
    owners = _each_once([variables[i] for i in present])
    kept = [_prepare(gradients[i], variables[i], sparse_as_dense) for i in present]
    factor = prescale_factor * postscale_factor
    results: list[Gradient | None] = [None] * len(gradients)
    if not present:
        return results
    if _is_alone(process_set):
        reduced = [indexed_slices.scale(gradient, factor) for gradient in kept]
    else:
        reduced = (_run_eagerly if tf.executing_eagerly() else _trace)(compression, kept, owners, op == hvd.Average, factor, process_set)
    for i, gradient in zip(present, reduced, strict=True):
        results[i] = gradient
    return results


def _each_once(variables: Sequence[object]) -> list[object]:
    """A variable's state serves one gradient of an exchange: where it comes up again, it is None."""
    seen: set[Hashable] = set()
    result = []
    for variable in variables:
        key = id(variable) if isinstance(variable, tf.Variable) else variable
        result.append(None if key in seen else variable)
        seen.add(key)
    return result


def _prepare(gradient: Gradient, variable: object, sparse_as_dense: bool) -> Gradient:
    if not gradient.dtype.is_floating:
        raise ValueError(f"gradients must be floating point to be exchanged. Received: dtype={gradient.dtype.name}. Cast them first.")
    if isinstance(gradient, tf.IndexedSlices):
        if gradient.dense_shape is None:
            if not isinstance(variable, tf.Variable):
                raise ValueError("tf.IndexedSlices must have a `dense_shape` to be exchanged. Received: dense_shape=None.")
            gradient = tf.IndexedSlices(gradient.values, gradient.indices, tf.shape(variable, gradient.indices.dtype))
        return tf.convert_to_tensor(gradient) if sparse_as_dense else indexed_slices.merge(gradient)
    return tf.convert_to_tensor(gradient)


def _is_alone(process_set: hvd.ProcessSet) -> bool:
    # An elastic job may grow under a graph that was traced on one rank.
    return not int(os.environ.get("HOROVOD_ELASTIC", "0")) and process_set.size() == 1


class _Exchange:
    """What is fixed for one list of gradients: who goes densely, which buckets there are, and what they are called on the wire.

    Holds no gradient and no variable, so that it can outlive them in a traced function.
    """

    def __init__(
        self,
        compression: BucketCodec,
        gradients: Sequence[Gradient],
        variables: Sequence[object],
        average: bool,
        factor: float,
        process_set: hvd.ProcessSet,
    ):
        self.compression = compression
        self.average = average
        self.factor = factor
        self.process_set = process_set
        self.shapes = [buckets.static_shape(g, v) for g, v in zip(gradients, variables, strict=True)]
        self.labels = [f"{messages.leaf_name(v)} {g.dtype.name}" for g, v in zip(gradients, variables, strict=True)]
        self.slots = list(compression.slots(variables, self.shapes))
        self.name = messages.exchange_name(compression, self.slots, self.shapes, self.process_set)
        self.small, self.buckets = buckets.divide(gradients, variables, self.shapes, compression.min_size, compression.bucket_bytes)

    def __call__(self, gradients: Sequence[Gradient]) -> list[Gradient]:
        with tf.device("CPU"):
            return self._run(gradients)

    def _run(self, gradients: Sequence[Gradient]) -> list[Gradient]:
        ranks = mpi_ops.size_op(process_set_id=self.process_set.process_set_id)
        scale = tf.constant(self.factor, tf.float64)
        if self.average:
            scale /= tf.cast(ranks, tf.float64)
        step = self.compression.step(self.slots)
        results: list[Gradient | None] = [None] * len(gradients)
        done: list[object] = []
        encoded, clocks = [], []
        # A rank with another model or configuration has other messages. That shows in the first one, whatever it is; so the others wait for
        # it, or one that this rank sends and another does not would keep the error from coming out.
        first: list[tf.Tensor] = []
        for number, positions in enumerate(self.buckets):
            outputs, sent, times, operations = self._exchange_bucket(gradients, positions, number, step, ranks, scale, first)
            first = first or tf.nest.flatten(outputs, expand_composites=True)
            encoded.append(sent)
            clocks.append(times)
            done += operations
            for i, output in zip(positions, outputs, strict=True):
                results[i] = self._restore(output, gradients[i])
        for i, output in self._average_small(gradients, step, scale, first):
            results[i] = output
        metrics = self._metrics(gradients, clocks)
        with tf.control_dependencies([r.values if isinstance(r, tf.IndexedSlices) else r for r in results]):
            done.append(self.compression.advance(self.slots))
            done += self.compression.record(encoded, metrics)
        # Graphs without automatic control dependencies run only what a result depends on.
        with tf.control_dependencies([operation for operation in done if operation is not None]):
            return [tf.nest.map_structure(tf.identity, result, expand_composites=True) for result in results]

    def _exchange_bucket(
        self,
        gradients: Sequence[Gradient],
        positions: Sequence[int],
        number: int,
        step: tf.Tensor,
        ranks: tf.Tensor,
        scale: tf.Tensor,
        after: Sequence[tf.Tensor],
    ) -> tuple[Sequence[Gradient], Encoded, tuple[tf.Tensor, ...], list[tf.Operation]]:
        """One gather. Returns the reduced gradients, what this rank sent, four times and the ops that commit it."""
        inputs = [_to_float32(gradients[i]) for i in positions]
        started = _clock(inputs)
        with tf.control_dependencies([started]):
            inputs = [tf.nest.map_structure(tf.identity, value, expand_composites=True) for value in inputs]
        bucket = Bucket(
            gradients=inputs,
            slots=[self.slots[i] for i in positions],
            labels=[self.labels[i] for i in positions],
            step=step,
            rank=tf.cast(mpi_ops.rank_op(), tf.int64),
            number=number,
            ranks=ranks,
        )
        sent: Encoded = self.compression.encode(bucket)
        coded = _clock([sent.payload])
        with tf.control_dependencies([coded, *after]):
            payload = tf.identity(sent.payload)
        payloads = hvd.allgather(
            payload, name=f"HorovodAllgather_{self.name}_{number}", ignore_name_scope=True, process_set=self.process_set
        )
        gathered = _clock([payloads])
        with tf.control_dependencies([messages.keep(tf.size(payloads) >= 0)]):
            commits = list(sent.commit())
        with tf.control_dependencies([gathered]):
            payloads = tf.identity(payloads)
        outputs = self.compression.decode(payloads, bucket, tf.cast(scale, tf.float32))
        decoded = _clock(outputs)
        return outputs, sent, (started, coded, gathered, decoded), commits

    def _average_small(
        self, gradients: Sequence[Gradient], step: tf.Tensor, scale: tf.Tensor, after: Sequence[tf.Tensor]
    ) -> Iterator[tuple[int, tf.Tensor]]:
        """Horovod's own dense way, all small gradients of a dtype in one message. Yields positions and reduced gradients."""
        for dtype in (tf.float32, tf.float64):
            positions = [i for i in self.small if (gradients[i].dtype == tf.float64) == (dtype == tf.float64)]
            if not positions:
                continue
            parts = [tf.reshape(tf.cast(gradients[i], dtype), [-1]) for i in positions]
            # A message that is constant on one rank only would be folded away there; the step, read from a variable, prevents that.
            with tf.control_dependencies(after):
                message = tf.concat([*parts, tf.cast(step, dtype)[None]], 0)
            total = mpi_ops._allreduce(
                message,
                # The first message has one name on all ranks. One that gathers under it where another reduces is an error at once.
                name=f"HorovodAllreduce_{self.name}_{dtype.name}" if after else f"HorovodAllgather_{self.name}_0",
                op=hvd.Sum,
                ignore_name_scope=True,
                process_set=self.process_set,
            )
            after = after or [total]
            reduced = tf.split(total * tf.cast(scale, dtype), [*(self.shapes[i].num_elements() for i in positions), 1])
            with tf.control_dependencies([messages.keep(total[-1] >= 0)]):
                reduced = [tf.identity(value) for value in reduced]
            for i, value in zip(positions, reduced, strict=False):
                yield i, tf.cast(tf.reshape(value, self.shapes[i]), gradients[i].dtype)

    @staticmethod
    def _restore(output: Gradient, gradient: Gradient) -> Gradient:
        """A result with the dtype and static shape of the gradient that was sent."""
        if isinstance(gradient, tf.IndexedSlices):
            values = tf.cast(output.values, gradient.dtype)
            return tf.IndexedSlices(values, tf.cast(output.indices, gradient.indices.dtype), gradient.dense_shape)
        return tf.cast(tf.ensure_shape(output, gradient.shape), gradient.dtype)

    def _metrics(self, gradients: Sequence[Gradient], clocks: Sequence[tuple[tf.Tensor, ...]]) -> ExchangeMetrics:
        def bytes_of(positions: Sequence[int]) -> tf.Tensor:
            sizes = [
                tf.reduce_prod(tf.cast(gradients[i].dense_shape, tf.float64))
                if isinstance(gradients[i], tf.IndexedSlices)
                else tf.cast(tf.size(gradients[i], tf.int64), tf.float64)
                for i in positions
            ]
            return 4.0 * tf.add_n(sizes) if sizes else tf.zeros([], tf.float64)

        def seconds(begin: int, end: int) -> tf.Tensor:
            return tf.add_n([times[end] - times[begin] for times in clocks]) if clocks else tf.zeros([], tf.float64)

        return ExchangeMetrics(bytes_of(self.small), bytes_of(range(len(gradients))), seconds(0, 1), seconds(1, 2), seconds(2, 3))


def _to_float32(gradient: Gradient) -> Gradient:
    if isinstance(gradient, tf.IndexedSlices):
        return tf.IndexedSlices(tf.cast(gradient.values, tf.float32), gradient.indices, gradient.dense_shape)
    return tf.cast(gradient, tf.float32)


def _clock(after: Sequence[Gradient]) -> tf.Tensor:
    """The time at which all of these are there."""
    with tf.control_dependencies(tf.nest.flatten(after, expand_composites=True)):
        return tf.timestamp()


def _trace(compression: BucketCodec, gradients: Sequence[Gradient], variables: Sequence[object], *options: Any) -> list[Gradient]:
    return _Exchange(compression, gradients, variables, *options)(gradients)


# The attribute of a compressor that holds its traced exchanges of eager calls, by what they exchange. There, and not in a dictionary of
# this module, because each of them holds its compressor and would keep it alive.
_FUNCTIONS = "_exchange_functions"


def _run_eagerly(compression: BucketCodec, gradients: Sequence[Gradient], variables: Sequence[object], *options: Any) -> list[Gradient]:
    """Runs an exchange as a traced function, so that eager loops trace once per list of variables and kinds of gradients, not per step."""
    owners = [variable for variable in variables if isinstance(variable, tf.Variable)]
    identities = tuple(id(variable) if isinstance(variable, tf.Variable) else variable for variable in variables)
    kinds = tuple((type(g), g.dtype, str(buckets.static_shape(g, v))) for g, v in zip(gradients, variables, strict=True))
    key = (identities, kinds, options)
    functions = vars(compression).setdefault(_FUNCTIONS, {})  # by way of vars, so that no checkpoint follows it
    if key not in functions:
        traced = _Exchange(compression, gradients, variables, *options)
        functions[key] = tf.function(traced.__call__, reduce_retracing=True)
        for owner in owners:
            weakref.finalize(owner, _forget, weakref.ref(compression), key)
    return functions[key](gradients)


def _forget(owner: weakref.ref, key: Hashable) -> None:
    """Drops the function of a variable that is gone."""
    compression = owner()
    if compression is not None:
        vars(compression)[_FUNCTIONS].pop(key, None)
