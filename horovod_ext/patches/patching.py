"""Replaces functions of other packages, after checking that they are the ones we know."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from horovod_ext.signatures import require

_STOCK = "_horovod_ext_stock"


def replace(owner: Any, name: str, parameters: Sequence[str], make: Callable[[Callable], Callable]) -> None:
    """Replaces the function `owner.name` by `make(stock)`, once.

    Args:
        owner: the module or class that holds the function.
        name: its name there.
        parameters: the names of its parameters, which the replacement relies on.
        make: gets the stock function, returns the replacement.

    Raises:
        ImportError: if the function is missing or takes other parameters.
    """
    stock = require(owner, name, parameters)
    if hasattr(stock, _STOCK):
        return
    replacement = functools.wraps(stock)(make(stock))
    setattr(replacement, _STOCK, stock)
    setattr(owner, name, replacement)
