"""Functions of other packages, called and replaced by their signature only after it was checked."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

_FIX = "Tested with horovod 0.28.1, TensorFlow 2.21 and Keras 3.15 and 2.21: install these."


def require(owner: Any, name: str, parameters: Sequence[str]) -> Callable:
    """Returns `owner.name` if it is a function with these parameters; the `ImportError` otherwise names both signatures."""
    qualified = f"{getattr(owner, '__module__', None) or ''}.{owner.__name__}.{name}".lstrip(".")
    function = getattr(owner, name, None)
    if function is None:
        raise ImportError(f"horovod_ext builds on {qualified}({', '.join(parameters)}), which this version does not have. {_FIX}")
    received = list(inspect.signature(function).parameters)
    if received != list(parameters):
        expected = f"{qualified}({', '.join(parameters)})"
        raise ImportError(f"horovod_ext builds on {expected}. Received: {qualified}({', '.join(received)}). {_FIX}")
    return function


def arguments(function: Callable, args: Sequence[Any], kwargs: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a call of a function by name, defaults filled in."""
    bound = inspect.signature(function).bind(*args, **kwargs)
    bound.apply_defaults()
    return bound.arguments
