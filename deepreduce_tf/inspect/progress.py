"""A progress bar. Needs tqdm."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator

import tqdm


@contextlib.contextmanager
def progress_bar(steps: int) -> Iterator[Callable[[str], None]]:
    """A function to call with the name of each step before it; it moves a bar where standard error is a terminal."""
    with tqdm.tqdm(total=steps, disable=None, leave=False, file=sys.stderr) as bar:

        def advance(what: str) -> None:
            bar.set_description_str(f"{what:.40}")
            bar.update()

        yield advance
