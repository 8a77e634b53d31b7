"""`keras.Model._resolve_auto_jit_compile`: Keras compiles with XLA on its own accord where there is a GPU."""

from __future__ import annotations

from collections.abc import Callable

import keras

from horovod_ext.keras3_optimizer import is_distributed
from horovod_ext.patches.patching import replace


def install() -> None:
    replace(keras.Model, "_resolve_auto_jit_compile", ["self"], _never_for_distributed)


def _never_for_distributed(stock: Callable) -> Callable:
    def _resolve_auto_jit_compile(self):
        return False if is_distributed(getattr(self, "optimizer", None)) else stock(self)

    return _resolve_auto_jit_compile
