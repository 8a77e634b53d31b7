"""The number of this version, from pyproject.toml: the one beside the package in a checkout, or what pip recorded of it."""

from __future__ import annotations

import importlib.metadata
import re
from pathlib import Path

_NAME = "deepreduce-tf"


def _read_version() -> str:
    pyproject = Path(__file__).resolve().parent.parent / "pyproject.toml"
    text = pyproject.read_text() if pyproject.is_file() else ""
    version = re.search(r'^version = "([^"]+)"$', text, re.MULTILINE)
    if version and f'name = "{_NAME}"' in text:
        return version[1]
    return importlib.metadata.version(_NAME)


__version__ = _read_version()
