"""What was measured of gradients: a table for people, JSON for programs, a plot."""

from __future__ import annotations

import io
import itertools
import json
import math
import os
import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from deepreduce_tf.inspection import ERROR_CLASSES, PairFigures, Sample, measure_value, pareto_front
from deepreduce_tf.inspection_settings import label
from deepreduce_tf.stage import Stage, registered_stages, serialize
from deepreduce_tf.value_codecs import ValueCodec

SORT_KEYS = {
    "bytes": lambda pair: pair.bytes,
    "error": lambda pair: pair.relative_error,
    "encode": lambda pair: pair.encode_seconds,
    "decode": lambda pair: pair.decode_seconds,
}
FITS = ("PolyFit", "DoubleExpFit")


def sort_pairs(pairs: Sequence[PairFigures], key: str) -> list[PairFigures]:
    """By class of error; within one by a key of `SORT_KEYS`, then by bytes."""
    return sorted(pairs, key=lambda pair: (pair.error_class, SORT_KEYS[key](pair), pair.bytes, pair.decode_seconds))


def summary(sample: Sample, small: dict[str, np.ndarray]) -> dict[str, object]:
    """What holds for all pairs, for JSON and the table's title."""
    return {
        "gradients": len(sample.names),
        "elements": len(sample.flat),
        "kept": sample.kept,
        "small_gradients": len(small),
        "small_elements": sum(gradient.size for gradient in small.values()),
        "bound_bits_per_index": sample.bound_bits / max(1, sample.kept),
        "select_ms": 1e3 * sample.select_seconds,
    }


def to_json(facts: dict[str, object], sample: Sample, pairs: Sequence[PairFigures], failures: Sequence[str]) -> str:
    """One JSON document: `facts`, all pairs, and the codecs that failed."""
    front = {id(pair) for pair in pareto_front(pairs)}
    rows = [
        {
            "index": serialize(pair.index),
            "value": serialize(pair.value),
            "error_class": ERROR_CLASSES[pair.error_class][1],
            "bits_per_index": pair.bits_per_index,
            "bits_per_value": pair.bits_per_value,
            "index_bytes": pair.index_bytes,
            "value_bytes": pair.value_bytes,
            "bytes": pair.bytes,
            "relative_volume": pair.bytes / (4 * len(sample.flat)),
            "sent": pair.sent,
            "relative_error": pair.relative_error if math.isfinite(pair.relative_error) else None,
            "energy_kept": pair.energy_kept if math.isfinite(pair.energy_kept) else None,
            "encode_ms": 1e3 * pair.encode_seconds,
            "decode_ms": 1e3 * pair.decode_seconds,
            "pareto": id(pair) in front,
        }
        for pair in pairs
    ]
    return json.dumps(facts | {"pairs": rows, "failed": list(failures)}, indent=2, allow_nan=False)


def to_table(title: str, sample: Sample, pairs: Sequence[PairFigures], rows: int | None) -> str:
    """A table of sorted pairs, as wide as it must be.

    Args:
        title: lines above the table.
        sample: the gradients.
        pairs: what `sort_pairs` returns.
        rows: how many to show of each class of error; all when None.
    """
    import rich.box
    import rich.console
    import rich.table

    table = rich.table.Table(box=rich.box.SIMPLE_HEAD, pad_edge=False)
    bound = f"bits/index\nbound {sample.bound_bits / max(1, sample.kept):.2f}"
    for column in ("index", "value"):
        table.add_column(column, overflow="fold")
    for column in (bound, "bits/\nvalue", "bytes", "% of\ndense", "error\n%", "energy\nkept %", "encode\nms/MB", "decode\nms/MB"):
        table.add_column(column, justify="right", no_wrap=True)
    front, megabytes = {id(pair) for pair in pareto_front(pairs)}, 4e-6 * len(sample.flat)
    for place, (_, name) in enumerate(ERROR_CLASSES):
        members = [pair for pair in pairs if pair.error_class == place]
        if not members:
            continue
        shown = members[:rows]
        hidden = f", {len(shown)} of {len(members)} pairs" if len(shown) < len(members) else ""
        table.add_row(f"[bold]error: {name}[/bold]{hidden}")
        for pair in shown:
            star = " *" if id(pair) in front else ""
            table.add_row(label(pair.index) + star, label(pair.value), *_cells(pair, sample, megabytes))
        table.add_section()
    console = rich.console.Console()
    # Folded names would be hard to read: in a narrow terminal lines go on in the next one.
    console.width = max(console.width, console.measure(table, options=console.options.update(max_width=1000)).maximum)
    with console.capture() as text:
        console.print(title, highlight=False, markup=False, soft_wrap=True)
        console.print(table)
        star = "* no other pair has fewer bytes or a smaller error without more of the other; none from an error of 100 % on"
        console.print(star, highlight=False, markup=False, soft_wrap=True)
    return text.get().rstrip("\n")


def _cells(pair: PairFigures, sample: Sample, megabytes: float) -> tuple[str, ...]:
    return (
        f"{pair.bits_per_index:.2f}",
        f"{pair.bits_per_value:.2f}",
        f"{pair.bytes:,}",
        f"{100 * pair.bytes / (4 * len(sample.flat)):.3f}",
        "0" if pair.relative_error == 0 else f"{100 * pair.relative_error:.3g}",
        f"{100 * pair.energy_kept:.2f}",
        f"{1e3 * pair.encode_seconds / megabytes:.2f}",
        f"{1e3 * pair.decode_seconds / megabytes:.2f}",
    )


def check_picture(option: str, file: Path) -> None:
    """Refuses a file that `save_picture` could not write.

    Raises:
        ValueError: with the option that names the file.
    """
    try:
        folder = file.resolve().parent
    except (OSError, RuntimeError) as error:  # a link to itself
        raise ValueError(f"{option} must name a file that may be written. Received: {file}: {error}") from error
    if file.suffix.lower() not in (".png", ".pdf", ".svg"):
        raise ValueError(f"{option} must name a .png, .pdf or .svg file. Received: {file}")
    if not folder.is_dir():
        raise ValueError(f"{option} must name a file in a folder that exists. Received: {file}. Make the folder first.")
    if file.is_dir() or not os.access(folder, os.W_OK):
        raise ValueError(f"{option} must name a file that may be written. Received: {file}")


def save_picture(figure, file: Path) -> None:
    """Writes a figure of matplotlib, all of it or nothing: a full disk leaves the file that was there."""
    picture = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of characters in names that the font lacks
        figure.savefig(picture, format=file.suffix[1:].lower(), dpi=120)
    file = file.resolve()  # a link stays one
    part = file.with_name(f".{os.getpid()}.part")
    try:
        part.write_bytes(picture.getbuffer())
        os.replace(part, file)
    finally:
        part.unlink(missing_ok=True)


def plot(file: Path, sample: Sample, pairs: Sequence[PairFigures]) -> None:
    """Draws size against error of each pair, and the sorted values of the largest gradient with their fits."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(15, 6.5), layout="constrained")
    _plot_pairs(left, sample, pairs)
    _plot_values(right, sample)
    save_picture(figure, file)
    plt.close(figure)


def _plot_pairs(axes, sample: Sample, pairs: Sequence[PairFigures]) -> None:
    errors = [pair.relative_error for pair in pairs if 0 < pair.relative_error < math.inf]
    lossless = min([*errors, 1e-3]) / 10  # where a logarithmic axis shows 0

    def places(some):
        return [max(lossless, pair.relative_error) for pair in some], [8 * pair.bytes / max(1, sample.kept) for pair in some]

    pairs = [pair for pair in pairs if math.isfinite(pair.relative_error)]
    names = list(dict.fromkeys(label(pair.value) for pair in pairs))
    for i, name in enumerate(names):
        marker = "osD^vPX"[i // 10 % 7]
        axes.scatter(
            *places([pair for pair in pairs if label(pair.value) == name]), s=22, color=f"C{i % 10}", marker=marker, alpha=0.6, label=name
        )
    front, names = sorted(pareto_front(pairs), key=lambda pair: pair.relative_error), []
    axes.step(*places(front), where="post", color="black", linewidth=1, label="Pareto front")
    for number, (_, group) in enumerate(itertools.groupby(front, key=lambda pair: pair.relative_error), 1):
        first, *others = group
        axes.annotate(number, np.ravel(places([first])), (-3, -3), textcoords="offset points", ha="right", va="top", fontsize=8)
        as_good = f", and {len(others)} more" if others else ""
        names.append(f"{number}  {label(first.index)}, {label(first.value)}{as_good}")
    axes.text(0.02, 0.02, "\n".join(names), transform=axes.transAxes, fontsize=7)  # under the front there is nothing
    axes.set(xscale="log", xlabel="relative error (left edge: lossless)", ylabel="bits per kept element, places and values")
    axes.set_yscale("log", base=2)
    axes.yaxis.set_major_formatter("{x:g}")
    axes.set_ylim(bottom=min(places(front)[1], default=2) / 4)  # room for that text
    axes.set_title(f"{len(pairs)} pairs; raw: 64 bits")
    axes.figure.legend(*axes.get_legend_handles_labels(), loc="outside lower left", fontsize=7, ncols=6)


def _plot_values(axes, sample: Sample) -> None:
    largest = int(np.argmax(sample.sizes))
    values = sample.values[sample.splits[largest] : sample.splits[largest + 1]]
    order = np.argsort(-values.numpy(), kind="stable")
    axes.plot(values.numpy()[order], color="black", linewidth=2, label=f"{len(order):,} kept values")
    for stage in _fits():
        try:
            decoded = measure_value(stage, values, np.array([0, len(order)], np.int64)).decoded
        except Exception as error:  # as in the table, one codec's failure is not the others'
            axes.plot([], [], label=f"{label(stage)}: {str(error)[:60]}")
            continue
        axes.plot(decoded[order], linewidth=1, label=label(stage))
    axes.set(xlabel="place in descending order", ylabel="value")
    axes.set_title(f"{sample.names[largest]}, {sample.sizes[largest]:,} elements", parse_math=False)
    axes.legend(fontsize=8)


def _fits() -> list[Stage]:
    return [stage() for stage in registered_stages(ValueCodec) if stage.__name__ in FITS]
