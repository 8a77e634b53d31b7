"""Which Keras an object belongs to, told by its class.

Keras 3 stays installed, and its objects turn up, when TF_USE_LEGACY_KERAS makes `tf.keras` Keras 2.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

import keras


def is_keras3_module(module: ModuleType) -> bool:
    """Whether a module called Keras is Keras 3: `tensorflow.keras` is a lazily loaded module of its own."""
    return issubclass(module.Model, keras.Model)


def is_keras3_optimizer(optimizer: Any) -> bool:
    return isinstance(optimizer, keras.optimizers.Optimizer)


def is_keras3_model(model: Any) -> bool:
    return isinstance(model, keras.Model)


def is_keras3_variable(variable: Any) -> bool:
    return isinstance(variable, keras.Variable)


def tensorflow_variable(variable: Any) -> Any:
    """The `tf.Variable` inside a Keras 3 variable, which lacks the `ref()` that Horovod knows variables by; anything else as it is."""
    return variable.value if is_keras3_variable(variable) else variable
