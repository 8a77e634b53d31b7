"""What was measured of gradients, as a table for people. Needs rich."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import rich.box
import rich.console
import rich.table

from deepreduce_tf.inspect.measure import ERROR_CLASSES, PairMetrics, Sample
from deepreduce_tf.inspect.report import pareto_front
from deepreduce_tf.inspect.settings import label


def to_table(facts: dict[str, Any], sample: Sample, pairs: Sequence[PairMetrics], rows: int | None) -> str:
    """A table of sorted pairs, as wide as it must be.

    Args:
        facts: `summary` with the file, the ratio and the smallest size.
        sample: the gradients.
        pairs: what `sort_pairs` returns.
        rows: how many to show of each class of error; all when None.
    """
    table = rich.table.Table(box=rich.box.SIMPLE_HEAD, pad_edge=False)
    bound = f"bits/index\nbound {sample.bound_bits / max(1, sample.kept):.2f}"
    for column in ("index", "value"):
        table.add_column(column, overflow="fold")
    for column in (bound, "bits/\nvalue", "bytes", "% of\ndense", "error\n%", "energy\nkept %", "encode\nms/MB", "decode\nms/MB"):
        table.add_column(column, justify="right", no_wrap=True)
    front, megabytes = {id(pair) for pair in pareto_front(pairs)}, 4e-6 * len(sample.flat)
    for error_class, (_, name) in enumerate(ERROR_CLASSES):
        members = [pair for pair in pairs if pair.error_class == error_class]
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
        console.print(_title(facts), highlight=False, markup=False, soft_wrap=True)
        console.print(table)
        star = "* no other pair has fewer bytes or a smaller error without more of the other; none from an error of 100 % on"
        console.print(star, highlight=False, markup=False, soft_wrap=True)
    return text.get().rstrip("\n")


def _cells(pair: PairMetrics, sample: Sample, megabytes: float) -> tuple[str, ...]:
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


def _title(facts: dict[str, Any]) -> str:
    """What was measured, in two lines."""
    lines = [
        f"{facts['file']}: {facts['gradients']} gradients, {facts['elements']:,} elements; "
        f"top {100 * facts['ratio']:g} % keeps {facts['kept']:,} in {facts['select_ms']:.2f} ms"
    ]
    if facts["small_gradients"]:
        lines.append(
            f"left out: {facts['small_gradients']} gradients of fewer than {facts['min_size']} elements, "
            f"{facts['small_elements']:,} together, which are averaged densely"
        )
    return "\n".join(lines)
