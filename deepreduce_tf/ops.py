"""The C++ ops. Each has a doc of its own: `help(deepreduce_tf.ops.top_k_select)`."""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Callable
from types import ModuleType
from typing import Any

import tensorflow as tf

_FOLDER = os.path.dirname(os.path.abspath(__file__))
_PREFIX = "deep_reduce_"


def _load() -> ModuleType:
    library = os.path.join(_FOLDER, "_ops.so")
    try:
        with open(os.path.join(_FOLDER, "_ops.tensorflow_version")) as file:
            built_for = file.read().strip()
    except FileNotFoundError:
        built_for = None
    if built_for is None or not os.path.exists(library):
        raise ImportError(
            f"the op library of deepreduce_tf was not built: {library} is missing. Run `make` in a checkout, or `pip install .`."
        )
    if built_for != tf.__version__:
        raise ImportError(
            f"the op library of deepreduce_tf was built for TensorFlow {built_for}, but TensorFlow {tf.__version__} is installed. "
            "Build it again: `pip install --force-reinstall --no-deps .`."
        )
    _check_cpu_level()
    _load_zlib_ng()
    return tf.load_op_library(library)


def _check_cpu_level() -> None:
    level = os.environ.get("DEEPREDUCE_CPU_LEVEL") or "avx512"
    if level not in ("portable", "avx2", "avx512"):
        raise ImportError(f"DEEPREDUCE_CPU_LEVEL must be portable, avx2 or avx512. Received: DEEPREDUCE_CPU_LEVEL={level}")


def _load_zlib_ng() -> None:
    """Makes zlib-ng's C functions visible to the op library; without the package only Deflate is missing, and says so when it is used."""
    try:
        from zlib_ng import zlib_ng  # an optional package
    except ImportError:
        return
    ctypes.CDLL(zlib_ng.__file__, mode=ctypes.RTLD_GLOBAL)


_library = _load()

top_k_select = _library.deep_reduce_top_k_select
threshold_select = _library.deep_reduce_threshold_select
random_k_select = _library.deep_reduce_random_k_select
support_values = _library.deep_reduce_support_values
residual_commit = _library.deep_reduce_residual_commit
frame_pack = _library.deep_reduce_frame_pack
frame_decode_sum = _library.deep_reduce_frame_decode_sum
frame_decode = _library.deep_reduce_frame_decode
frame_unpack = _library.deep_reduce_frame_unpack
scatter_sum = _library.deep_reduce_scatter_sum
inflate = _library.deep_reduce_inflate


def codec(name: str) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """The encode and decode ops of a codec, by its name: `EliasFano` or `elias_fano`."""
    snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()
    return getattr(_library, f"{_PREFIX}{snake}_encode"), getattr(_library, f"{_PREFIX}{snake}_decode")
