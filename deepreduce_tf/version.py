"""The number of this version, from pyproject.toml: the one beside the package in a checkout, or what pip recorded of it."""

from __future__ import annotations

import importlib.metadata
import re
from pathlib import Path

_NAME = "deepreduce-tf"


def _read_version() -> str:
    pyproject = Path(__file__).resolve().parent.parent / "pyproject.toml"
    text = pyproject.read_text() if pyproject.is_file() else ""
    if re.search(rf'^name = "{_NAME}"$', text, re.MULTILINE):
        return re.search(r'^version = "([^"]+)"$', text, re.MULTILINE)[1]
    return importlib.metadata.version(_NAME)


__version__ = _read_version()
