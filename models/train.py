"""Trains ResNet-20 or an MLP on Fashion-MNIST with compressed gradients: `horovodrun -np 2 python models/train.py`.

Ends with a table of what was sent and, as the last line, the same metrics as one line of JSON.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")  # TensorFlow reads it when it is imported

import horovod.tensorflow.keras as hvd
import keras
import numpy as np
import report
import tensorflow as tf
from data import DataError, ImageData, load_fashion_mnist, test_batches, train_batches
from horovod.tensorflow import grouped_allreduce
from mlp import mlp
from progress import Progress
from resnet import resnet20

from deepreduce_tf import QSGD, DeepReduce, LogQuantizer, Nonzero, RandomK, SketchML, Threshold, TopK

MODELS = {"resnet20": ("ResNet-20", resnet20), "mlp": ("MLP", mlp)}
DENSE = {"none": (hvd.Compression.none, 4), "fp16": (hvd.Compression.fp16, 2)}


def parse_arguments() -> argparse.Namespace:
    """The command line, with the defaults that the README's results were measured with."""
    parser = argparse.ArgumentParser(description="Train a network on Fashion-MNIST over Horovod with compressed gradients.")
    parser.add_argument("--model", choices=tuple(MODELS), default="resnet20", help="the network (default %(default)s)")
    parser.add_argument("--compression", choices=("deepreduce", *DENSE), default="deepreduce", help="none and fp16 are Horovod's own")
    parser.add_argument("--sparsifier", choices=("topk", "randomk", "threshold", "nonzero"), default="topk", help="which elements are kept")
    parser.add_argument("--ratio", type=float, default=0.1, help="share of the elements that topk and randomk keep (default %(default)s)")
    parser.add_argument("--warmup-steps", type=int, default=0, help="steps in which topk comes down from 25 %% to the ratio")
    parser.add_argument("--threshold", type=float, default=1e-3, help="smallest magnitude that threshold keeps (default %(default)s)")
    parser.add_argument(
        "--preset", metavar="NAME", help="a method of docs/presets.md, instead of --index, --value and --bits; 3lc keeps all"
    )
    parser.add_argument("--index", default="rice", help="index codec: rice, adaptive, bloom_filter, ... (default %(default)s)")
    parser.add_argument("--value", default="qsgd", help="value codec: qsgd, log_quantizer, poly_fit, ... (default %(default)s)")
    parser.add_argument("--bits", type=int, default=8, help="bits of qsgd, log_quantizer and sketch_ml (default %(default)s)")
    parser.add_argument("--error-feedback", action=argparse.BooleanOptionalAction, default=True, help="send later what was not sent now")
    parser.add_argument("--steps", type=int, default=640, help="optimizer steps (default %(default)s)")
    parser.add_argument("--batch-size", type=int, default=64, help="images per rank and step (default %(default)s)")
    parser.add_argument("--learning-rate", type=float, default=0.1, help="highest learning rate (default %(default)s)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--save", type=Path, metavar="FILE.keras", help="keep the trained model")
    parser.add_argument("--save-gradients", type=Path, metavar="FILE.npz", help="keep the gradients of rank 0's next batch after the last")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the last line to this file too")
    arguments = parser.parse_args()
    if arguments.seed not in range(2**32):
        parser.error(f"--seed must be in [0, 2^32). Received: {arguments.seed}")
    if not 0 < arguments.learning_rate < float("inf"):
        parser.error(f"--learning-rate must be positive. Received: {arguments.learning_rate}")
    for file in filter(None, (arguments.save, arguments.save_gradients, arguments.json)):
        if not file.absolute().parent.is_dir():
            parser.error(f"the folder of {file} does not exist")
        if file.is_dir() or not os.access(file if file.exists() else file.absolute().parent, os.W_OK):
            parser.error(f"{file} must be a file that may be written")
    for name in ("steps", "batch_size"):
        if getattr(arguments, name) < 1:
            parser.error(f"--{name.replace('_', '-')} must be at least 1. Received: {getattr(arguments, name)}")
    return arguments


def build_compression(arguments: argparse.Namespace) -> type | DeepReduce:
    """What `hvd.DistributedOptimizer` gets as its `compression`."""
    if arguments.compression in DENSE:
        return DENSE[arguments.compression][0]
    sparsifiers = {
        "topk": lambda: TopK(ratio=arguments.ratio, warmup_steps=arguments.warmup_steps),
        "randomk": lambda: RandomK(ratio=arguments.ratio),
        "threshold": lambda: Threshold(threshold=arguments.threshold),
        "nonzero": Nonzero,
    }
    sparsifier = sparsifiers[arguments.sparsifier]()
    common = {"error_feedback": arguments.error_feedback, "seed": arguments.seed}
    if arguments.preset:
        dense = DeepReduce.preset(arguments.preset).sparsifier == TopK(ratio=1.0)
        return DeepReduce.preset(arguments.preset, **common, **({} if dense else {"sparsifier": sparsifier}))
    quantizers = {"qsgd": QSGD, "logquantizer": LogQuantizer, "sketchml": SketchML}
    quantizer = quantizers.get(arguments.value.lower().replace("_", "").replace("-", ""))
    value = arguments.value if quantizer is None else quantizer(bits=arguments.bits)
    return DeepReduce(sparsifier=sparsifier, index=arguments.index, value=value, **common)


def use_own_cores() -> None:
    """Gives each rank its share of the machine's cores, so that ranks do not wait for each other's threads."""
    cores = max(1, len(os.sched_getaffinity(0)) // hvd.local_size())
    tf.config.threading.set_intra_op_parallelism_threads(cores)
    tf.config.threading.set_inter_op_parallelism_threads(cores)


def build_model(compression: type | DeepReduce, arguments: argparse.Namespace) -> keras.Model:
    """The network, compiled with SGD: a linear warm-up over a twentieth of the steps, then a cosine down to zero."""
    warmup = max(1, arguments.steps // 20)
    learning_rate = keras.optimizers.schedules.CosineDecay(
        0.0, max(1, arguments.steps - warmup), warmup_target=arguments.learning_rate, warmup_steps=warmup
    )
    optimizer = hvd.DistributedOptimizer(keras.optimizers.SGD(learning_rate, momentum=0.9), compression=compression)
    model = MODELS[arguments.model][1]()
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer, loss=loss, metrics=["accuracy"], jit_compile=False)
    return model


def train(model: keras.Model, data: ImageData, arguments: argparse.Namespace) -> float:
    """Runs the steps and returns the seconds they took."""
    callbacks = [hvd.callbacks.BroadcastGlobalVariablesCallback(0), hvd.callbacks.MetricAverageCallback()]
    if hvd.rank() == 0:
        callbacks.append(Progress(arguments.steps))
    batches = train_batches(data, hvd.rank(), hvd.size(), arguments.batch_size, arguments.seed)
    started = time.monotonic()
    model.fit(batches, steps_per_epoch=arguments.steps, epochs=1, callbacks=callbacks, shuffle=False, verbose=0)
    return time.monotonic() - started


def save_gradients(model: keras.Model, data: ImageData, arguments: argparse.Namespace) -> None:
    """Writes what this rank's next batch would be exchanged as: a float32 array per trainable variable, under the variable's path."""
    batches = train_batches(data, hvd.rank(), hvd.size(), arguments.batch_size, arguments.seed)
    images, labels = next(iter(batches.skip(arguments.steps)))
    with tf.GradientTape() as tape:
        loss = model.compute_loss(images, labels, model(images, training=True))
    variables = model.trainable_variables
    gradients = tape.gradient(loss, [variable.value for variable in variables])
    with open(arguments.save_gradients, "wb") as file:  # given a name, NumPy would add its own ending
        np.savez(file, **{variable.path: gradient.numpy() for variable, gradient in zip(variables, gradients, strict=True)})


def average_statistics(model: keras.Model) -> None:
    """Averages batch normalisation's moving statistics: each rank's come from its own images, and no gradient keeps them together."""
    averages = grouped_allreduce([tf.convert_to_tensor(weight.value) for weight in model.non_trainable_weights])
    for weight, average in zip(model.non_trainable_weights, averages, strict=True):
        weight.assign(average)


def evaluate(model: keras.Model, data: ImageData) -> float:
    """Accuracy on the whole test set, of which each rank classifies its share."""
    batches, labels = test_batches(data, hvd.rank(), hvd.size())
    predicted = model.predict(batches, verbose=0).argmax(axis=-1)
    right = hvd.allreduce(np.int64(np.sum(predicted == labels)), name="right", op=hvd.Sum)
    return int(right) / len(data.test_labels)


def main() -> None:
    arguments = parse_arguments()
    hvd.init()
    use_own_cores()
    keras.utils.set_random_seed(arguments.seed)
    try:
        data = load_fashion_mnist()
        compression = build_compression(arguments)
    except (DataError, ValueError) as error:
        sys.exit(f"train.py: {error}")
    model = build_model(compression, arguments)
    seconds = train(model, data, arguments)

    average_statistics(model)
    differing = report.differing_weights(model)
    if differing:
        sys.exit(f"train.py: {len(differing)} of {len(model.weights)} weights differ between the ranks, the first is {differing[0]}")
    accuracy = evaluate(model, data)
    if isinstance(compression, DeepReduce):
        metrics = report.compressed_metrics(accuracy, compression)
    else:
        metrics = report.dense_metrics(accuracy, model, DENSE[arguments.compression][1])
    if hvd.rank() == 0:
        keep_files(model, metrics, data, arguments)
        print(f"weights are equal, bit for bit, on {hvd.size()} rank{'s' if hvd.size() > 1 else ''}")
        title = f"{MODELS[arguments.model][0]} on {data.name}, {hvd.size()} x {arguments.batch_size} images, {arguments.steps} steps"
        configuration = f"compression {arguments.compression}" if arguments.compression in DENSE else repr(compression)
        report.print_table(f"{title}\n{configuration}", metrics, seconds)
        print(metrics.to_json(), flush=True)


def keep_files(model: keras.Model, metrics: report.Metrics, data: ImageData, arguments: argparse.Namespace) -> None:
    """Writes the files that were asked for."""
    if arguments.save:
        model.save(arguments.save)
    if arguments.save_gradients:
        save_gradients(model, data, arguments)
    if arguments.json:
        arguments.json.write_text(metrics.to_json() + "\n")


if __name__ == "__main__":
    main()
