"""Sparsifiers: which elements of a gradient are kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from deepreduce_tf import ops
from deepreduce_tf.segments import ragged
from deepreduce_tf.stage import Stage, check_integer, is_number, is_variable, register_stage

Schedule = Callable[[tf.Tensor], tf.Tensor]
_SMALLEST = 2.0**-149  # positive float32


class Selection(NamedTuple):
    """What is kept of a bucket.

    Attributes:
        indices: int32[segments, (count)], ascending strictly within a segment.
        values: float32[segments, (count)], at these indices.
    """

    indices: tf.RaggedTensor
    values: tf.RaggedTensor


class Sparsifier(Stage):
    """Chooses the elements of each gradient that are sent.

    Own sparsifiers implement `keep`. "acc" is residual + gradient with error feedback, the gradient without.

    Attributes:
        seeded: the support is a function of seed and step that receivers compute too, so no index code is sent.
    """

    seeded: bool = False

    def keep(self, acc: tf.Tensor, step: tf.Tensor) -> tf.Tensor:
        """The indices to keep of one gradient.

        Args:
            acc: float32[size].
            step: scalar int64.

        Returns:
            int32[count], ascending strictly.
        """
        raise NotImplementedError(f"{type(self).__name__} must implement `keep(acc, step)`")

    def select(self, gradients: Sequence[tf.Tensor], residuals: Sequence[tf.Variable], seed: tf.Tensor, step: tf.Tensor) -> Selection:
        """Adds each gradient to its residual and keeps some elements.

        Args:
            gradients: float32 tensors of any shapes.
            residuals: empty, or one float32 variable per gradient; left holding residual + gradient, or untouched where the gradient is
                not finite (then its non-finite values are among those kept).
            seed: scalar int64, the same on all ranks.
            step: scalar int64.
        """
        indices, values = [], []
        for i, gradient in enumerate(gradients):
            flat = tf.reshape(gradient, [-1])
            finite = tf.math.is_finite(flat)
            usable = tf.reduce_all(finite)
            acc = flat
            if residuals:
                change = tf.where(usable, flat, tf.zeros_like(flat))
                total = residuals[i] + tf.reshape(change, residuals[i].shape)
                total = residuals[i].assign(tf.clip_by_value(total, tf.float32.min, tf.float32.max), read_value=True)
                acc = tf.where(usable, tf.reshape(total, [-1]), flat)
            bad = tf.cast(tf.where(~finite)[:, 0], tf.int32)
            kept = tf.cond(usable, lambda acc=acc: self.keep(acc, step), lambda bad=bad: bad)
            indices.append(kept)
            values.append(tf.gather(acc, kept))
        counts = tf.stack([tf.size(kept, tf.int64) for kept in indices])
        return _selection(tf.concat(indices, 0), tf.concat(values, 0), tf.concat([[0], tf.cumsum(counts)], 0))

    def __call__(self, gradient: tf.Tensor, seed: int = 0, step: int = 0) -> tf.Tensor:
        """The gradient with the elements that are not kept set to zero; float32, without error feedback."""
        gradient = tf.convert_to_tensor(gradient, tf.float32)
        kept = self.select([gradient], [], tf.constant(seed, tf.int64), tf.constant(step, tf.int64))
        size = tf.size(gradient, tf.int64)[None]
        (seen,) = ops.scatter_sum(kept.indices.values, kept.values.values, kept.indices.row_splits, size, 1.0, N=1)
        return tf.reshape(seen, tf.shape(gradient))


def _selection(indices: tf.Tensor, values: tf.Tensor, splits: tf.Tensor) -> Selection:
    support = ragged(indices, splits)
    return Selection(support, support.with_values(values))


def _handles(residuals: Sequence[tf.Variable]) -> list[tf.Tensor]:
    return [residual.handle for residual in residuals]


def _check_ratio(ratio: Any) -> Any:
    if is_number(ratio):
        if not 0 < float(ratio) <= 1:
            raise ValueError(f"`ratio` must be in (0, 1]. Received: ratio={ratio!r}")
        return float(ratio)
    scalar_variable = is_variable(ratio) and tuple(ratio.shape) == () and tf.as_dtype(ratio.dtype).is_floating
    schedule = callable(ratio) and hasattr(ratio, "get_config") and not isinstance(ratio, type)
    if not (scalar_variable or schedule):
        raise ValueError(
            "`ratio` must be a number in (0, 1], a scalar float variable, or a schedule: a callable of the step with `get_config`, like "
            f"keras.optimizers.schedules.LearningRateSchedule. Received: ratio={ratio!r}"
        )
    return ratio


def _ratio_at(ratio: Any, step: tf.Tensor) -> tf.Tensor:
    """A ratio as a float64 scalar; variables and schedules are read in the graph, so that no change retraces."""
    if is_number(ratio):
        return tf.constant(ratio, tf.float64)
    if isinstance(ratio, tf.Variable):
        return tf.cast(ratio.read_value(), tf.float64)
    if is_variable(ratio):
        return tf.cast(ratio.value, tf.float64)  # of Keras 3
    return tf.cast(ratio(step), tf.float64)


@register_stage
class TopK(Sparsifier):
    """Keeps the elements of largest magnitude, exactly; among equals those of lower index.

    What is left out stays in the residual and is sent when it has grown. max(1, round(ratio * size)) elements of each gradient are kept.

    Args:
        ratio: share of the elements that is kept, in (0, 1]: a number, a `tf.Variable`, or a Keras-style schedule of the step.
        warmup_steps: steps over which the ratio decreases, exponentially, from 0.25 to `ratio` (Lin et al., "Deep Gradient Compression",
            ICLR 2018, section 3.3).

    Example:
        >>> TopK(ratio=0.34)([3.0, -4.0, 0.5]).numpy()
        array([ 0., -4.,  0.], dtype=float32)
    """

    warmup_ratio = 0.25

    def __init__(self, ratio: float | tf.Variable | Schedule = 0.1, warmup_steps: int = 0) -> None:
        self.ratio = _check_ratio(ratio)
        self.warmup_steps = check_integer("warmup_steps", warmup_steps, 0, 2**31 - 1)

    def ratio_at(self, step: tf.Tensor) -> tf.Tensor:
        """The ratio at a step (scalar int64), as a float64 scalar."""
        ratio = _ratio_at(self.ratio, step)
        if self.warmup_steps == 0:
            return ratio
        progress = tf.minimum(tf.cast(step, tf.float64) / self.warmup_steps, 1.0)
        warm = tf.maximum(ratio, self.warmup_ratio * tf.pow(ratio / self.warmup_ratio, progress))
        return tf.where(ratio > 0, warm, ratio)  # what is out of range is refused as it is

    def select(self, gradients: Sequence[tf.Tensor], residuals: Sequence[tf.Variable], seed: tf.Tensor, step: tf.Tensor) -> Selection:
        return _selection(*ops.top_k_select(gradients, _handles(residuals), self.ratio_at(step)))


@register_stage
class RandomK(Sparsifier):
    """Keeps elements drawn at random, the same on every rank, so that no index bytes are sent.

    max(1, round(ratio * size)) elements of each gradient are kept; they change with every step.

    Args:
        ratio: share of the elements that is kept, in (0, 1]: a number, a `tf.Variable`, or a Keras-style schedule of the step.
    """

    seeded = True

    def __init__(self, ratio: float | tf.Variable | Schedule = 0.1) -> None:
        self.ratio = _check_ratio(ratio)

    def select(self, gradients: Sequence[tf.Tensor], residuals: Sequence[tf.Variable], seed: tf.Tensor, step: tf.Tensor) -> Selection:
        return _selection(*ops.random_k_select(gradients, _handles(residuals), _ratio_at(self.ratio, step), seed, step))


@register_stage
class Threshold(Sparsifier):
    """Keeps the elements whose magnitude is at least a threshold. May keep nothing, or everything.

    Args:
        threshold: positive, in the unit of the gradients.
    """

    def __init__(self, threshold: float = 1e-3) -> None:
        if not is_number(threshold) or not 0 < threshold <= float(tf.float32.max):
            raise ValueError(f"`threshold` must be a positive number that float32 can hold. Received: threshold={threshold!r}")
        self.threshold = float(threshold)

    def select(self, gradients: Sequence[tf.Tensor], residuals: Sequence[tf.Variable], seed: tf.Tensor, step: tf.Tensor) -> Selection:
        # Anything smaller would become zero in float32, and keep everything.
        threshold = max(self.threshold, _SMALLEST)
        return _selection(*ops.threshold_select(gradients, _handles(residuals), threshold))


@register_stage
class Nonzero(Sparsifier):
    """Keeps all elements that are not zero: for gradients that are sparse by themselves (embeddings, recommenders)."""

    def __init__(self) -> None:
        pass

    def select(self, gradients: Sequence[tf.Tensor], residuals: Sequence[tf.Variable], seed: tf.Tensor, step: tf.Tensor) -> Selection:
        return _selection(*ops.threshold_select(gradients, _handles(residuals), _SMALLEST))
