"""Which gradients travel together."""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf

from horovod_ext.contract import Gradient


def divide(
    gradients: Sequence[Gradient],
    variables: Sequence[object],
    shapes: Sequence[tf.TensorShape],
    min_size: int,
    bucket_bytes: int,
) -> tuple[list[int], list[list[int]]]:
    """Divides the gradients of an exchange.

    Buckets go from the last variable to the first, the order in which back-propagation delivers, so that exchanging overlaps it.
    `tf.IndexedSlices` have a bucket each. Gradients that can have state, and gradients that cannot, do not share one.

    Args:
        gradients: dense tensors or `tf.IndexedSlices`.
        variables: for each gradient its variable, its name, or None.
        shapes: the dense shape of each gradient, as far as it is known.
        min_size: elements from which a gradient is compressed.
        bucket_bytes: dense bytes after which a bucket is closed.

    Returns:
        Positions of the gradients that are averaged densely, and positions of the gradients of each bucket.
    """
    small: list[int] = []
    buckets: list[list[int]] = []
    space, kind = 0, None
    for i in reversed(range(len(gradients))):
        elements = shapes[i].num_elements() if shapes[i].is_fully_defined() else None
        if isinstance(gradients[i], tf.IndexedSlices):
            buckets.append([i])
            space, kind = 0, None
        elif elements is not None and (elements < min_size or elements == 0):
            small.append(i)
        else:
            size = 4 * (elements or 0)
            before, kind = kind, (variables[i] is None, elements is None)
            if size > space or not buckets or kind != before:
                buckets.append([])
                space = bucket_bytes
            buckets[-1].append(i)
            space -= size
    return small, buckets


def static_shape(gradient: Gradient, variable: object) -> tf.TensorShape:
    """The shape of a gradient's dense form, as far as it is known while tracing."""
    shape = tf.TensorShape(getattr(variable, "shape", None))
    if shape.is_fully_defined():
        return shape
    if isinstance(gradient, tf.IndexedSlices):
        return tf.TensorShape(tf.get_static_value(gradient.dense_shape))
    return gradient.shape
