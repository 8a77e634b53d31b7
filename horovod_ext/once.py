"""Warnings that a process shows one time."""

from __future__ import annotations

import warnings

_shown: set[str] = set()


def warn_once(message: str, stacklevel: int) -> None:
    """Warns unless this process has shown the message before; `stacklevel` counts from the caller, as for `warnings.warn`."""
    if message not in _shown:
        _shown.add(message)
        warnings.warn(message, stacklevel=stacklevel + 1)
