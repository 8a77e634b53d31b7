"""The command line of `python -m deepreduce_tf inspect` and what it calls."""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import os
import sys
from pathlib import Path

from deepreduce_tf.index_codecs import IndexCodec
from deepreduce_tf.inspect.gradient_files import load_gradients
from deepreduce_tf.inspect.measure import Sample, count_steps, measure_pairs
from deepreduce_tf.inspect.picture_files import check_picture
from deepreduce_tf.inspect.report import SORT_KEYS, sort_pairs, summary, to_json
from deepreduce_tf.inspect.settings import stages_to_try
from deepreduce_tf.sparsifiers import TopK
from deepreduce_tf.stage import check_integer
from deepreduce_tf.value_codecs import ValueCodec

DESCRIPTION = """\
Encodes and decodes saved gradients with every pair of index and value codecs, as one bucket, and shows what each costs.
Registered codecs are tried in a few settings each; those of an application with --import."""

COLUMNS = """\
what the columns mean:
  bits/index   bits of the index codes for each element that TopK keeps; the bound is log2 C(size, count) / count, the fewest bits
               that tell all choices of `count` among `size` elements apart (a codec that finds structure may need fewer)
  bits/value   bits of the value codes for each element that TopK keeps, also where a Bloom filter sends more or fewer
  bytes        index and value codes of all gradients; a frame around them adds 32 bytes and about 10 per gradient
  % of dense   these bytes against float32 values of all elements
  error %      |sent - gradient| / |kept|: sent is what receivers decode, kept is what TopK keeps; the difference is taken over the
               elements that were sent or kept, so where all of these are right it is 0
  energy kept  1 - |sent - gradient|^2 / |gradient|^2 over all elements: the share of the whole gradient that arrives
  encode,      milliseconds for each megabyte (10^6 bytes) of dense float32 gradient: the fastest of a few eager calls of the stages
  decode       for all gradients at once, after selection and without frame and exchange

exit codes: 0; 2 for arguments or files that do not fit, or cannot be written; 130 when interrupted."""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the command to those of `python -m deepreduce_tf`."""
    parser = commands.add_parser(
        "inspect",
        help="what each pair of codecs makes of saved gradients",
        description=DESCRIPTION,
        epilog=COLUMNS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(run=run)
    parser.add_argument("gradients", type=Path, metavar="GRADIENTS", help=".npz with one array per gradient, or .npy with one gradient")
    parser.add_argument("--ratio", type=float, default=0.01, help="share of the elements that TopK keeps (default %(default)s)")
    parser.add_argument("--min-size", type=int, default=1024, help="leave out gradients with fewer elements (default %(default)s)")
    parser.add_argument("--index", default="", metavar="NAME,...", help="index codecs to try (default: all)")
    parser.add_argument("--value", default="", metavar="NAME,...", help="value codecs to try (default: all)")
    parser.add_argument("--import", dest="modules", action="append", default=[], metavar="MODULE", help="a module that registers stages")
    parser.add_argument("--sort", choices=tuple(SORT_KEYS), default="bytes", help="order within a class of error (default %(default)s)")
    parser.add_argument("--rows", type=int, default=5, help="pairs to show of each class of error (default %(default)s)")
    parser.add_argument("--all", action="store_true", help="show all pairs")
    parser.add_argument("--json", action="store_true", help="all pairs as one JSON document on standard output, instead of the table")
    parser.add_argument("--plot", type=Path, metavar="FILE.png", help="draw size against error, and the sorted values of the largest")


def run(arguments: argparse.Namespace) -> None:
    """Measures and shows.

    Raises:
        ValueError, ImportError: for a file, an argument or an environment that does not fit.
        OSError: for what cannot be written.
    """
    check_arguments(arguments)
    # Each of these imports a package of the extra `tools`, known to be installed only now and only where it is asked for: no layout
    # could have them at the top.
    from deepreduce_tf.inspect.progress import progress_bar

    if not arguments.json:
        from deepreduce_tf.inspect.table import to_table
    if arguments.plot:
        from deepreduce_tf.inspect.plot import save_plot

    for module in arguments.modules:
        import_stages(module)
    indices, unusable_indices = stages_to_try(IndexCodec, names_in(arguments.index))
    values, unusable_values = stages_to_try(ValueCodec, names_in(arguments.value))
    sparsifier = TopK(ratio=arguments.ratio)
    large, small = load_gradients(arguments.gradients, arguments.min_size)
    sample = Sample(large, sparsifier)
    with progress_bar(count_steps(indices, values)) as progress:
        pairs, failures = measure_pairs(sample, indices, values, progress)
    pairs, failures = sort_pairs(pairs, arguments.sort), [*unusable_indices, *unusable_values, *failures]
    if not pairs:
        raise ValueError(f"no pair of codecs could be measured. Received: {'; '.join(failures)}. Try others with --index and --value.")
    facts = {"file": str(arguments.gradients), "ratio": sparsifier.ratio, "min_size": arguments.min_size} | summary(sample, small)
    if arguments.json:
        show(to_json(facts, sample, pairs, failures))
    else:
        show(to_table(facts, sample, pairs, None if arguments.all else arguments.rows))
    for failure in failures:
        print(f"inspect: {failure}", file=sys.stderr)
    if arguments.plot:
        try:
            save_plot(arguments.plot, sample, pairs)
        except OSError as error:
            raise OSError(f"--plot {arguments.plot}: {error.strerror or error}") from error


def show(text: str) -> None:
    """Writes all of a text to standard output, or as much as somebody reads."""
    try:
        print(text, flush=True)
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or Python would try again at its end
        if not isinstance(error, BrokenPipeError):  # a reader that has gone away is no error
            raise OSError(f"standard output: {error.strerror or error}") from error


def import_stages(module: str) -> None:
    """Imports an application's module, which may fail in any way."""
    try:
        importlib.import_module(module)
    except (Exception, SystemExit) as error:
        raise ImportError(f"--import {module}: {type(error).__name__}: {error}") from error


def check_arguments(arguments: argparse.Namespace) -> None:
    """Refuses before anything is measured what would fail afterwards."""
    check_integer("--min-size", arguments.min_size, 0, 2**31 - 1)
    check_integer("--rows", arguments.rows, 1, 2**31 - 1)
    needed = ["tqdm"] + ["rich"] * (not arguments.json) + ["matplotlib"] * bool(arguments.plot)
    missing = [name for name in needed if importlib.util.find_spec(name) is None]
    if missing:
        raise ImportError(
            f"{' and '.join(missing)} must be installed. Run `pip install {' '.join(missing)}`, or install the extra `tools`."
        )
    if arguments.plot:
        check_picture("--plot", arguments.plot)


def names_in(argument: str) -> list[str]:
    """The names in a list with commas."""
    return [name.strip() for name in argument.split(",") if name.strip()]
