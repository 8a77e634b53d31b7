"""Replaces functions of other packages, after checking that they are the ones we know."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

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


def require(owner: Any, name: str, parameters: Sequence[str]) -> Callable:
    """Returns `owner.name` if it is a function with these parameters; the `ImportError` otherwise names both signatures."""
    place = f"{getattr(owner, '__module__', None) or ''}.{owner.__name__}.{name}".lstrip(".")
    function = getattr(owner, name, None)
    if function is None:
        raise ImportError(f"horovod_ext builds on {place}({', '.join(parameters)}), which this version does not have. {_FIX}")
    received = list(inspect.signature(function).parameters)
    if received != list(parameters):
        raise ImportError(f"horovod_ext builds on {place}({', '.join(parameters)}). Received: {place}({', '.join(received)}). {_FIX}")
    return function


def arguments(stock: Callable, args: Sequence[Any], kwargs: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a call of `stock` by name, defaults filled in."""
    bound = inspect.signature(stock).bind(*args, **kwargs)
    bound.apply_defaults()
    return bound.arguments


_FIX = "Tested with horovod 0.28.1, TensorFlow 2.21 and Keras 3.15 and 2.21: install these."
