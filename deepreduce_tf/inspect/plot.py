"""What was measured of gradients, as a picture. Needs matplotlib."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from deepreduce_tf.inspect.measure import PairMetrics, Sample, measure_value
from deepreduce_tf.inspect.picture_files import save_picture
from deepreduce_tf.inspect.report import pareto_front
from deepreduce_tf.inspect.settings import label
from deepreduce_tf.stage import registered_stages
from deepreduce_tf.value_codecs import ValueCodec

FITS = ("PolyFit", "DoubleExpFit")


def save_plot(file: Path, sample: Sample, pairs: Sequence[PairMetrics]) -> None:
    """Draws size against error of each pair, and the sorted values of the largest gradient with their fits."""
    figure = Figure(figsize=(15, 6.5), layout="constrained")
    left, right = figure.subplots(1, 2)
    _plot_pairs(left, sample, pairs)
    _plot_values(right, sample)
    save_picture(figure, file)


def _plot_pairs(axes: Axes, sample: Sample, pairs: Sequence[PairMetrics]) -> None:
    errors = [pair.relative_error for pair in pairs if 0 < pair.relative_error < math.inf]
    lossless = min([*errors, 1e-3]) / 10  # where a logarithmic axis shows 0

    def coordinates(some: Sequence[PairMetrics]) -> tuple[list[float], list[float]]:
        return [max(lossless, pair.relative_error) for pair in some], [8 * pair.bytes / max(1, sample.kept) for pair in some]

    pairs = [pair for pair in pairs if math.isfinite(pair.relative_error)]
    names = list(dict.fromkeys(label(pair.value) for pair in pairs))
    for i, name in enumerate(names):
        marker = "osD^vPX"[i // 10 % 7]
        axes.scatter(
            *coordinates([pair for pair in pairs if label(pair.value) == name]),
            s=22,
            color=f"C{i % 10}",
            marker=marker,
            alpha=0.6,
            label=name,
        )
    front, names = sorted(pareto_front(pairs), key=lambda pair: pair.relative_error), []
    axes.step(*coordinates(front), where="post", color="black", linewidth=1, label="Pareto front")
    for number, (_, group) in enumerate(itertools.groupby(front, key=lambda pair: pair.relative_error), 1):
        first, *others = group
        (error,), (bits,) = coordinates([first])
        axes.annotate(str(number), (error, bits), (-3, -3), textcoords="offset points", ha="right", va="top", fontsize=8)
        as_good = f", and {len(others)} more" if others else ""
        names.append(f"{number}  {label(first.index)}, {label(first.value)}{as_good}")
    axes.text(0.02, 0.02, "\n".join(names), transform=axes.transAxes, fontsize=7)  # no pair is below the front
    axes.set(xscale="log", xlabel="relative error (left edge: lossless)", ylabel="bits per kept element, indices and values")
    axes.set_yscale("log", base=2)
    axes.yaxis.set_major_formatter("{x:g}")
    axes.set_ylim(bottom=min(coordinates(front)[1], default=2) / 4)  # space for that text
    axes.set_title(f"{len(pairs)} pairs; raw: 64 bits")
    axes.figure.legend(*axes.get_legend_handles_labels(), loc="outside lower left", fontsize=7, ncols=6)


def _plot_values(axes: Axes, sample: Sample) -> None:
    largest = int(np.argmax(sample.sizes))
    values = sample.values[largest : largest + 1]
    kept = values.values.numpy()
    order = np.argsort(-kept, kind="stable")
    axes.plot(kept[order], color="black", linewidth=2, label=f"{len(order):,} kept values")
    for stage in _fits():
        try:
            decoded = measure_value(stage, values).decoded
        except Exception as error:  # as in the table, one codec's failure is not the others'
            axes.plot([], [], label=f"{label(stage)}: {str(error)[:60]}")
            continue
        axes.plot(decoded[order], linewidth=1, label=label(stage))
    axes.set(xlabel="position in descending order", ylabel="value")
    axes.set_title(f"{sample.names[largest]}, {sample.sizes[largest]:,} elements", parse_math=False)
    axes.legend(fontsize=8)


def _fits() -> list[ValueCodec]:
    return [stage() for stage in registered_stages(ValueCodec) if stage.__name__ in FITS]
