"""Volumes and times of the paper's methods on real gradients of ResNet-20, as in its Figure 8. `make figure8` runs this.

What is measured: the bytes of index and value codes, the error and the time of each preset, of the default and of the smallest pair, on
all gradients and on one layer of 36,864 elements, the size that the paper gives times for. Without a file of gradients ResNet-20 is trained
first.

The yardstick: for volumes, raw pairs of a 32-bit index and a float32 for each kept element, and the dense float32 gradients; for times,
those that the paper publishes (Xu et al., "DeepReduce: A Sparse-tensor Communication Framework", NeurIPS 2021), of other machines.

How to read it: shares and errors are the same on every machine; times are the fastest of a few eager calls and can be compared within one
run, with the published ones by their order of magnitude only. Shares count codes; the second table counts whole frames.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import rich.console
import rich.table
from matplotlib.figure import Figure

from deepreduce_tf import Adaptive, DeepReduce, SketchML, Sparsifier, TopK
from deepreduce_tf.compressor import bucket_of
from deepreduce_tf.inspect.gradient_files import load_gradients
from deepreduce_tf.inspect.measure import PairMetrics, Sample, join, measure_index, measure_value
from deepreduce_tf.inspect.picture_files import check_picture, save_picture
from deepreduce_tf.inspect.settings import label
from deepreduce_tf.presets import PRESETS

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build"
LAYER_SIZE = 36_864
# Of one layer of 36,864 elements at 1 %: milliseconds to encode and decode (BF-P2 on a GPU), and percent of the dense bytes.
PUBLISHED_MS = {"deflate": (1.1, 3.2), "rle": (350, 7), "huffman": (120, 130), "skcompress": (700, 2300), "bf-p2": (4, 2.4)}
PUBLISHED_VOLUME = {"topk": 2.0, "qsgd-bf-p2": 0.70, "skcompress": 0.34}


@dataclasses.dataclass(frozen=True)
class Row:
    """One method: on all gradients, and on one layer of `LAYER_SIZE` elements if there is one.

    Attributes:
        index_share, value_share: bytes over those of raw pairs of a 32-bit index and a float32.
        volume: bytes over those of the dense gradients.
    """

    name: str
    codecs: str
    index_share: float
    value_share: float
    volume: float
    whole: PairMetrics
    layer: PairMetrics | None


def methods(ratio: float) -> dict[str, dict[str, Any]]:
    """Arguments of DeepReduce by name: the presets, the default, and what is smallest. Those that keep a share keep `ratio`."""
    plain = DeepReduce()
    own = {
        "default": {"sparsifier": plain.sparsifier, "index": plain.index, "value": plain.value},
        "smallest": {"sparsifier": plain.sparsifier, "index": Adaptive(), "value": SketchML(bits=2)},
    }
    named: dict[str, dict[str, Any]] = {**PRESETS, **own}
    return {name: {**arguments, "sparsifier": at_ratio(arguments["sparsifier"], ratio)} for name, arguments in named.items()}


def at_ratio(sparsifier: Sparsifier, ratio: float) -> Sparsifier:
    """A TopK of another ratio; dense methods (ratio 1) and other sparsifiers stay as they are."""
    return TopK(ratio) if isinstance(sparsifier, TopK) and sparsifier.ratio != 1 else sparsifier


def measure(gradients: dict[str, np.ndarray], arguments: dict[str, Any]) -> PairMetrics:
    """One method on all of some gradients."""
    sample = Sample(gradients, arguments["sparsifier"])
    index = measure_index(arguments["index"], sample)
    return join(index, measure_value(arguments["value"], index.values, arguments.get("error_feedback", True)), sample)


def measure_row(name: str, arguments: dict[str, Any], gradients: dict[str, np.ndarray], raw: int) -> Row:
    """One method; `raw` is the bytes of raw pairs of all gradients."""
    whole = measure(gradients, arguments)
    layer = dict(list(layers_of(gradients).items())[:1])
    return Row(
        name=name,
        codecs=f"{label(arguments['index'])}, {label(arguments['value'])}",
        index_share=whole.index_bytes / raw,
        value_share=whole.value_bytes / raw,
        volume=whole.bytes / sum(4 * gradient.size for gradient in gradients.values()),
        whole=whole,
        layer=measure(layer, arguments) if layer else None,
    )


def layers_of(gradients: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The gradients that the paper's numbers for one layer can be compared with."""
    return {name: gradient for name, gradient in gradients.items() if gradient.size == LAYER_SIZE}


def frame_volumes(gradients: dict[str, np.ndarray], table: dict[str, dict[str, Any]]) -> dict[str, tuple[float, float]]:
    """The smallest and largest frame of the layers, whole frames with their headers, over the layer's dense bytes."""
    volumes = {}
    for name in [*PUBLISHED_VOLUME, "default", "smallest"]:
        if name in table and layers_of(gradients):
            compression = DeepReduce(**table[name])
            frames = [8 * compression.encode(bucket_of([layer])).payload.shape[0] for layer in layers_of(gradients).values()]
            volumes[name] = (min(frames) / (4 * LAYER_SIZE), max(frames) / (4 * LAYER_SIZE))
    return volumes


def print_tables(title: str, rows: list[Row], volumes: dict[str, tuple[float, float]], layers: int) -> None:
    """The volumes and times of all gradients; below them, if there are any, the whole frames of `layers` layers."""
    table = rich.table.Table(title=title, title_justify="left", caption_justify="left")
    for column in ("method", "codecs"):
        table.add_column(column)
    headers = ("index\n% of raw", "values\n% of raw", "together\n% of raw", "% of\ndense", "error\n%", "encode\nms", "decode\nms")
    for column in (*headers, "one layer\nencode / decode ms", "published\nms"):
        table.add_column(column, justify="right")
    for row in rows:
        shares = (100 * share for share in (row.index_share, row.value_share, row.index_share + row.value_share))
        layer = f"{1e3 * row.layer.encode_seconds:.3f} / {1e3 * row.layer.decode_seconds:.3f}" if row.layer else "-"
        published = "{:g} / {:g}".format(*PUBLISHED_MS[row.name]) if row.name in PUBLISHED_MS else ""
        table.add_row(
            row.name,
            row.codecs,
            *(f"{share:.1f}" for share in shares),
            f"{100 * row.volume:.3f}",
            f"{100 * row.whole.relative_error:.3g}",
            f"{1e3 * row.whole.encode_seconds:.2f}",
            f"{1e3 * row.whole.decode_seconds:.2f}",
            layer,
            published,
        )
    console = rich.console.Console(width=180)  # codecs are not folded
    console.print(table)
    if volumes:
        small = rich.table.Table(title=f"whole frames of one layer of {LAYER_SIZE:,} elements, {layers} layers", title_justify="left")
        for column in ("method", "% of dense, smallest - largest", "published %"):
            small.add_column(column, justify="left" if column == "method" else "right")
        for name, (smallest, largest) in volumes.items():
            small.add_row(name, f"{100 * smallest:.3f} - {100 * largest:.3f}", str(PUBLISHED_VOLUME.get(name, "")))
        console.print(small)


def draw(file: Path, title: str, rows: list[Row]) -> None:
    """Stacked bars of the volumes; beside them the times, with the published ones as crosses."""
    figure = Figure(figsize=(14, 0.4 * len(rows) + 2.2), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    figure.suptitle(title)
    heights = np.arange(len(rows))
    index, value = (np.array([100 * getattr(row, share) for row in rows]) for share in ("index_share", "value_share"))
    left.barh(heights, index, color="C0", label="indices")
    left.barh(heights, value, left=index, color="C1", label="values")
    for height, row in enumerate(rows):
        left.text(index[height] + value[height] + 1, height, f"{100 * row.volume:.2f} % of dense", va="center", fontsize=7)
    left.set(yticks=heights, yticklabels=[row.name for row in rows], xlabel="% of raw pairs of a 32-bit index and a float32")
    left.set_xlim(0, 1.25 * max(100, *(index + value)))
    left.axvline(100, color="gray", linewidth=0.5)
    left.invert_yaxis()
    left.legend()
    timed = [(height, row) for height, row in enumerate(rows) if row.layer]
    for offset, name, color in ((-0.2, "encode", "C2"), (0.2, "decode", "C3")):
        seconds = [getattr(row.layer, f"{name}_seconds") for _, row in timed]
        right.barh([height + offset for height, _ in timed], [1e3 * each for each in seconds], 0.38, color=color, label=name)
        known = [(height + offset, PUBLISHED_MS[row.name][name == "decode"]) for height, row in timed if row.name in PUBLISHED_MS]
        right.plot([ms for _, ms in known], [height for height, _ in known], "x", color=color, label=f"{name}, published")
    right.set(xscale="log", xlabel=f"milliseconds, one layer of {LAYER_SIZE:,} elements")
    right.legend(fontsize=8)
    save_picture(figure, file)


def train(steps: int) -> Path:
    """Trains ResNet-20 on this machine alone and returns the file of its gradients."""
    file = BUILD / "resnet20_gradients.npz"
    program = [sys.executable, ROOT / "models" / "train.py", "--compression", "none", "--steps", str(steps), "--save-gradients", file]
    subprocess.run([str(word) for word in program], check=True)
    return file


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "gradients", type=Path, nargs="?", help=".npz of models/train.py --save-gradients; without it, ResNet-20 is trained"
    )
    parser.add_argument("--steps", type=int, default=200, help="steps to train (default %(default)s)")
    parser.add_argument("--ratio", type=float, default=0.01, help="share of the elements that is kept (default %(default)s)")
    parser.add_argument("--output", type=Path, default=BUILD / "figure8.png", help="the picture (default build/figure8.png)")
    arguments = parser.parse_args()
    BUILD.mkdir(exist_ok=True)
    try:  # what may be wrong comes before what takes long
        table = methods(arguments.ratio)
        check_picture("--output", arguments.output)
        gradients, _ = load_gradients(arguments.gradients or train(arguments.steps), min_size=1024)
    except ValueError as error:
        sys.exit(f"figure8.py: {error}")
    raw = 8 * Sample(gradients, TopK(arguments.ratio)).kept
    rows = [measure_row(name, each, gradients, raw) for name, each in table.items()]
    elements = sum(gradient.size for gradient in gradients.values())
    title = f"{len(gradients)} gradients, {elements:,} elements, top {100 * arguments.ratio:g} %"
    print_tables(title, rows, frame_volumes(gradients, table), len(layers_of(gradients)))
    draw(arguments.output, title, rows)
    print(arguments.output)


if __name__ == "__main__":
    main()
