"""Speed and memory of a training step's compression, against the targets. `make bench` runs this.

What is measured: encoding and decoding of one step's gradients in the shapes of ResNet-50's 161 variables, 25.56 M elements, on one core;
and the peak memory of an exchange on two ranks.

The yardstick: NumPy's in-place `e += g` over as many elements in the same run, which moves 12 bytes per element. Times are medians of runs
that take turns with it, given as multiples of it, so that a slow or busy machine changes both.

How to read it: compare a multiple with its target, and with the same line before a change, on the same machine. One line is in
microseconds and holds only for this machine; memory is a share of the gradients' bytes, whatever the machine.
"""

import argparse
import ctypes
import json
import os
import subprocess
import sys
import time
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import horovod.tensorflow as hvd
import numpy as np
import rich.console
import rich.table
import tensorflow as tf
from resnet50_shapes import SHAPES

from deepreduce_tf import QSGD, DeepReduce, TopK
from deepreduce_tf.compressor import bucket_of
from deepreduce_tf.state_variables import make_variable
from horovod_ext.exchange import exchange

ONE_LAYER = (3, 3, 64, 64)


def seconds(functions, repeats):
    """The median time of each function; they take turns, so that a noisy moment affects all of them."""
    times: dict[str, list[float]] = {name: [] for name in functions}
    for function in functions.values():
        function()
    for _ in range(repeats):
        for name, function in functions.items():
            start = time.perf_counter()
            function()
            times[name].append(time.perf_counter() - start)
    return {name: float(np.median(values)) for name, values in times.items()}


def gradients_of(shapes, rng):
    """Heavy-tailed gradients: normal values of widely different scales."""
    return [tf.constant((rng.standard_normal(s) * np.exp(0.8 * rng.standard_normal(s)) * 1e-3).astype("f")) for s in shapes]


def encoder(gradients, ratio, copies=1):
    """A graph that encodes the gradients, and its last payload; residuals carry over from run to run."""
    compression = DeepReduce(sparsifier=TopK(ratio=ratio), value=QSGD(bits=8))
    residuals = [[make_variable(f"residual_{i}", g.shape, tf.float32) for i, g in enumerate(gradients)] for _ in range(copies)]
    step = tf.Variable(0, dtype=tf.int64)

    @tf.function
    def encode():
        sizes = []
        for number in range(copies):
            encoded = compression.encode(bucket_of(gradients, residuals[number], step=step.read_value(), number=number))
            with tf.control_dependencies([encoded.payload]):
                commits = encoded.commit()
            with tf.control_dependencies(commits):
                sizes.append(tf.size(encoded.payload))
        step.assign_add(1)
        return tf.add_n(sizes)

    return lambda: encode().numpy(), compression, bucket_of(gradients)


def encode_times(rng, repeats):
    """Seconds of encoding, and of what it is compared with."""
    gradients = gradients_of(SHAPES, rng)
    flat = tf.concat([tf.reshape(g, [-1]) for g in gradients], 0)
    e, g = np.zeros(flat.shape[0], "f"), flat.numpy()
    one = gradients_of([ONE_LAYER], rng)
    count = flat.shape[0] // 100
    top_k = tf.function(lambda: tf.math.top_k(tf.abs(flat), count, sorted=False).indices[0])
    functions = {
        "yardstick": lambda: np.add(e, g, out=e),
        "1 %": encoder(gradients, 0.01)[0],
        "10 %": encoder(gradients, 0.1)[0],
        "flat 1 %": encoder([flat], 0.01)[0],
        "layer 1": encoder(one, 0.01, copies=1)[0],
        "layer 11": encoder(one, 0.01, copies=11)[0],
    }
    times = seconds(functions, repeats)
    times |= seconds({"top_k": lambda: top_k().numpy(), "yardstick again": functions["yardstick"]}, 3)
    return times


def decode_times(rng, repeats):
    """Seconds of decoding the payloads of 0, 2 and 8 ranks into dense gradients."""
    gradients = gradients_of(SHAPES, rng)
    _, compression, bucket = encoder(gradients, 0.01)
    payload = compression.encode(bucket).payload

    def decoder(ranks):
        payloads = tf.concat([payload] * ranks, 0) if ranks else tf.zeros([0], tf.int64)

        @tf.function
        def decode():
            return compression.decode(payloads, bucket, tf.constant(1.0))[0][0, 0, 0, 0]

        return lambda: decode().numpy()

    return seconds({"decode 0": decoder(0), "decode 2": decoder(2), "decode 8": decoder(8)}, repeats)


def peak_memory():
    """On two ranks: peak memory of an exchange beyond gradients, residuals and results, over the bytes of the gradients."""
    hvd.init()
    gradients = gradients_of(SHAPES, np.random.default_rng(hvd.rank()))
    names = [f"gradient_{i}" for i in range(len(gradients))]
    compression = DeepReduce(sparsifier=TopK(ratio=0.01))
    step = tf.function(lambda: exchange(compression, gradients, names))
    gradient_bytes = sum(4 * g.shape.num_elements() for g in gradients)
    held, extra = [], []  # results are kept, or the memory of earlier ones would serve for later ones and not be counted
    for _ in range(8):
        ctypes.CDLL(None).malloc_trim(0)
        before = memory("VmRSS")
        Path("/proc/self/clear_refs").write_text("5")  # resets VmHWM
        held.append(step())
        extra.append((memory("VmHWM") - before) / gradient_bytes - 1)
    if hvd.rank() == 0:
        print(json.dumps({"peak_memory": float(np.median(extra[1:]))}))


def memory(field):
    """Bytes of this process: a field of Linux's /proc/self/status."""
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(field))
    return 1024 * int(line.split()[1])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=9, help="runs that a median is taken of (default %(default)s)")
    parser.add_argument("--ranks", action="store_true", help="the memory part alone; run under horovodrun -np 2")
    options = parser.parse_args()
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    if options.ranks:
        return peak_memory()
    rng = np.random.default_rng(0)
    times = encode_times(rng, options.repeats) | decode_times(rng, options.repeats)
    unit = times["yardstick"]
    command = [Path(sys.executable).with_name("horovodrun"), "-np", "2", "--gloo", sys.executable, __file__, "--ranks"]
    output = subprocess.run([str(word) for word in command], check=True, capture_output=True, text=True).stdout
    peak = json.loads(output[output.index("{") : output.rindex("}") + 1])["peak_memory"]
    rows = [
        ("finite check + error feedback + top 1 % + Rice + 8 bits, 25.56 M in 161 gradients", times["1 %"] / unit, "2"),
        ("the same as one flat gradient", times["flat 1 %"] / unit, "2.4"),
        ("the same at 10 %", times["10 %"] / unit, "4"),
        ("tf.math.top_k alone, 1 %", times["top_k"] / times["yardstick again"], "-"),
        ("decode and add per rank, beyond zeroing", (times["decode 8"] - times["decode 2"]) / 6 / unit, "0.15"),
        ("one 36,864-element gradient, microseconds", (times["layer 11"] - times["layer 1"]) / 10 * 1e6, "30"),
        ("peak memory of an exchange at 1 %, 2 ranks, share of the gradient bytes", peak, "0.10"),
    ]
    table = rich.table.Table(title=f"one core; yardstick {unit * 1e3:.1f} ms; times as multiples of it", title_justify="left")
    for column in ("what", "measured", "target"):
        table.add_column(column, justify="left" if column == "what" else "right")
    for what, measured, target in rows:
        table.add_row(what, f"{measured:.2f}", target)
    rich.console.Console(width=120).print(table)
    print(json.dumps({what: round(measured, 4) for what, measured, _ in rows}))


if __name__ == "__main__":
    main()
