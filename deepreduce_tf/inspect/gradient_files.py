"""Gradients from NumPy's files, as `models/train.py --save-gradients` writes them."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import numpy as np

EXPECTED = "Expected an .npz file with one array per gradient, or an .npy file with one gradient"
FIX = "`np.savez(file, **gradients)` or `models/train.py --save-gradients FILE.npz` writes one"
MAX_SIZE = 2**31 - 1


class GradientsError(ValueError):
    """A file that holds no gradients to work with. Its text is one line: what was expected, what was received, how to fix it."""


def load_gradients(file: Path, min_size: int = 0) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Reads gradients.

    Args:
        file: .npz with one numeric array per gradient, or .npy with one.
        min_size: see the result.

    Returns:
        The gradients with at least `min_size` elements and the smaller ones, float32 by name.

    Raises:
        GradientsError: for a file that is not one of gradients, or has none of `min_size` elements.
    """
    gradients = {name: _float32(f"{file}: array {name!r}", array) for name, array in _read(file).items()}
    large = {name: gradient for name, gradient in gradients.items() if gradient.size >= max(1, min_size)}
    if not large:
        largest = max((gradient.size for gradient in gradients.values()), default=0)
        raise GradientsError(
            f"{file}: expected a gradient of at least {max(1, min_size)} elements (--min-size). "
            f"Received: {len(gradients)} arrays, the largest of {largest} elements. Lower --min-size or save larger gradients."
        )
    return large, {name: gradient for name, gradient in gradients.items() if name not in large}


def _read(file: Path) -> dict[str, np.ndarray]:
    try:
        if file.is_fifo():  # would wait for a writer, and cannot be read twice
            raise OSError(errno.ESPIPE, os.strerror(errno.ESPIPE))
        with open(file, "rb") as stream:
            loaded = np.load(stream, allow_pickle=False)
            if isinstance(loaded, np.ndarray):
                return {file.stem: loaded}
            names, arrays = loaded.files, dict(loaded)
    except OSError as error:
        raise GradientsError(f"{file}: {_reason(error)}. {EXPECTED}; {FIX}.") from error
    except Exception as error:  # NumPy, zipfile and zlib raise a dozen kinds of errors for bytes that are not theirs
        reason = _reason(error)
        if "pickle" in reason:
            reason = "pickled Python objects, or bytes that are not NumPy's, which are not loaded"
        raise GradientsError(f"{file}: {EXPECTED}. Received: {reason}. {FIX}.") from error
    if not arrays:
        raise GradientsError(f"{file}: {EXPECTED}. Received: a file without arrays. {FIX}.")
    if len(names) != len(arrays):  # an archive may have one name twice, or both `a` and `a.npy`
        twice = next(name for name in names if names.count(name) > 1)
        raise GradientsError(f"{file}: expected one array per name. Received: {names.count(twice)} arrays {twice!r}. {FIX}.")
    return arrays


def _reason(error: Exception) -> str:
    """An error's text in one line without the last dot."""
    return " ".join(str(getattr(error, "strerror", None) or error).split()).rstrip(".") or type(error).__name__


def _float32(where: str, array: object) -> np.ndarray:
    """The array in float32, if all of it is finite there."""
    if not isinstance(array, np.ndarray) or array.dtype.kind not in "fiu":
        received = f"dtype {array.dtype}" if isinstance(array, np.ndarray) else "a file of another kind"
        raise GradientsError(f"{where} must hold real numbers. Received: {received}. Save gradients as float32: `np.float32(gradient)`.")
    if array.size > MAX_SIZE:
        raise GradientsError(f"{where} must have at most {MAX_SIZE} elements. Received: {array.size}. Save it in parts.")
    with np.errstate(over="ignore"):
        gradient = array.astype(np.float32)
    bad = array.size - int(np.count_nonzero(np.isfinite(gradient)))
    if bad:
        raise GradientsError(
            f"{where} must be finite in float32. Received: {bad} of {array.size} elements that are NaN, infinite or above 3.4e38. "
            "Save the gradients of a step that did not overflow."
        )
    return gradient
