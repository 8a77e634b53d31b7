"""Pictures written whole or not at all."""

from __future__ import annotations

import io
import os
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure


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


def save_picture(figure: Figure, file: Path) -> None:
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
