"""Many steps of gradients that differ by rank and step, for any number of compressors at once.

One graph holds them all, so they share Horovod's cycles and the tracing of the noise.
"""

import horovod.tensorflow as hvd
import numpy as np
import tensorflow as tf

from horovod_ext.exchange import exchange

# Nothing in it is Python control flow over tensors, and converting it takes a third of the time of tracing.
exchange = tf.autograph.experimental.do_not_convert(exchange)
SHAPES = [(64, 64), (3, 3, 16, 16), (33,), (7,), ()]
STEPS = 200


def noise(step, shapes=SHAPES):
    """Gradients that differ by rank and step."""
    step = tf.cast(step, tf.int32)
    return [tf.random.stateless_normal(shape, seed=tf.stack([step, 100 * hvd.rank() + i])) for i, shape in enumerate(shapes)]


def residuals(compression):
    """The residuals of a compressor, in the order of the variables."""
    return [residual.numpy() for residual in compression.error_feedback.residuals().values()]


def run_noise(compressions, variables, steps=STEPS):
    """Exchanges noise by each compressor, and adds up what came.

    Returns:
        For each compressor the bits of all results of all steps, mixed, and the sum of the results; the sum of this rank's gradients; the
        mean of their norm.
    """

    def flat(tensors):
        return tf.concat([tf.reshape(tensor, [-1]) for tensor in tensors], 0)

    @tf.function
    def run():
        size = sum(variable.shape.num_elements() for variable in variables)
        total, norm = tf.zeros([size], tf.float64), tf.zeros([])
        bits, sums = tf.zeros([len(compressions), size], tf.int64), tf.zeros([len(compressions), size], tf.float64)
        for step in tf.range(steps):
            gradients = noise(step, [variable.shape for variable in variables])
            results = tf.stack([flat(exchange(compression, gradients, variables, op=hvd.Sum)) for compression in compressions])
            bits = 31 * bits + tf.cast(tf.bitcast(results, tf.int32), tf.int64)
            sums += tf.cast(results, tf.float64)
            total += tf.cast(flat(gradients), tf.float64)
            norm += tf.linalg.global_norm(gradients) / steps
        return bits, sums, total, norm

    return run()


def assert_nothing_is_lost(compressions, sums, total, norm, steps=STEPS):
    """For each compressor: what came and the residuals of all ranks are the sum of all gradients.

    Yields:
        The compressor, and the norm of its residual on this rank by the mean norm of the gradients.
    """
    everything = hvd.allreduce(total, op=hvd.Sum)
    for compression, sent in zip(compressions, sums, strict=True):
        residual = np.concatenate([value.ravel() for value in residuals(compression)]).astype("float64")
        owed = hvd.allreduce(residual, op=hvd.Sum)
        np.testing.assert_allclose(sent + owed, everything, rtol=0, atol=1e-6 * steps, err_msg=repr(compression))
        ratio = np.linalg.norm(residual) / norm
        print(f"residual / gradient norm after {steps} steps: {ratio:.2f} with {compression}")
        yield compression, ratio
