"""Which Keras an object belongs to, told by its class."""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Any


@functools.cache
def keras3() -> ModuleType | None:
    """The installed Keras if it is Keras 3. It stays there, and its objects turn up, when TF_USE_LEGACY_KERAS makes `tf.keras` Keras 2."""
    try:
        import keras
    except ImportError:
        return None
    return keras if int(keras.__version__.split(".")[0]) >= 3 else None


def is_keras3_optimizer(optimizer: Any) -> bool:
    keras = keras3()
    return keras is not None and isinstance(optimizer, keras.optimizers.Optimizer)


def is_keras3_model(model: Any) -> bool:
    keras = keras3()
    return keras is not None and isinstance(model, keras.Model)


def is_keras3_variable(variable: Any) -> bool:
    keras = keras3()
    return keras is not None and isinstance(variable, keras.Variable)


def tensorflow_variable(variable: Any) -> Any:
    """The `tf.Variable` inside a Keras 3 variable, which lacks the `ref()` that Horovod knows variables by; anything else as it is."""
    return variable.value if is_keras3_variable(variable) else variable
