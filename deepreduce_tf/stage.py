"""What all stages share: configuration, and names that resolve to stages."""

from __future__ import annotations

import importlib
import inspect
import numbers
import re
from typing import Any, TypeVar

import numpy as np
import tensorflow as tf

_registry: dict[str, type[Stage]] = {}
_arguments: dict[object, tuple[str, ...]] = {}


def register_stage(stage_class: type[AnyStage]) -> type[AnyStage]:
    """Class decorator: lets a stage be named by a string, and be restored from a configuration."""
    key = _key(stage_class.__name__)
    held = _registry.get(key)
    if held is not None and held.__module__.startswith("deepreduce_tf.") and held.__module__ != stage_class.__module__:
        raise ValueError(f"a stage must not take the name of a built-in one. Received: class {stage_class.__name__}. Give it another name.")
    _registry[key] = stage_class
    return stage_class


def _key(name: str) -> str:
    return re.sub(r"[\s_-]", "", name).lower()


def arguments_of(stage_class: type[Stage]) -> tuple[str, ...]:
    """The names of a stage's arguments. Eager calls of codecs ask on every call, and reading a signature takes longer than coding."""
    if stage_class not in _arguments:
        _arguments[stage_class] = tuple(inspect.signature(stage_class).parameters)
    return _arguments[stage_class]


class Stage:
    """A step of the pipeline. Its keyword arguments are its whole configuration, each kept as an attribute of the same name."""

    def get_config(self) -> dict[str, object]:
        """The keyword arguments that make an equal stage, as values that JSON can hold."""
        return {name: _serialize(getattr(self, name)) for name in arguments_of(type(self))}

    @classmethod
    def from_config(cls: type[AnyStage], config: dict[str, Any]) -> AnyStage:
        """The stage that `get_config` describes."""
        if not isinstance(config, dict) or not set(config) <= set(arguments_of(cls)):
            raise ValueError(
                f"`config` must hold arguments of {cls.__name__}: {', '.join(arguments_of(cls)) or 'none'}. Received: config={config!r}"
            )
        return cls(**{name: _deserialize(value) for name, value in config.items()})

    def __repr__(self) -> str:
        arguments = {name: getattr(self, name) for name in arguments_of(type(self))}
        shown = (f"{name}={value if isinstance(value, Stage) else _serialize(value)!r}" for name, value in arguments.items())
        return f"{type(self).__name__}({', '.join(shown)})"

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.get_config() == other.get_config()


AnyStage = TypeVar("AnyStage", bound=Stage)


def serialize(stage: Stage) -> dict[str, object]:
    """A stage as a dictionary that JSON can hold."""
    return {"class_name": type(stage).__name__, "config": stage.get_config()}


def agreement(stage: Stage) -> dict[str, object]:
    """What all ranks must share of a stage: its configuration, without the values that variables happen to have."""
    arguments = {name: getattr(stage, name) for name in arguments_of(type(stage))}
    return {"class_name": type(stage).__name__, "config": {name: _agreed(value) for name, value in arguments.items()}}


def _agreed(value: object) -> object:
    if isinstance(value, Stage):
        return agreement(value)
    return "variable" if is_variable(value) else _serialize(value)


def variables_of(stage: Stage) -> list[tf.Variable]:
    """The variables that a stage holds, itself or in a stage of its own."""
    held = vars(stage).values()
    nested = [variable for value in held if isinstance(value, Stage) for variable in variables_of(value)]
    return [value for value in held if isinstance(value, tf.Variable)] + nested


def is_variable(value: object) -> bool:
    """Whether `value` is a variable of TensorFlow or Keras 3."""
    return isinstance(value, tf.Variable) or (hasattr(value, "value") and hasattr(value, "assign"))


def registered_stages(kind: type[AnyStage]) -> list[type[AnyStage]]:
    """All stages of a kind that a name can resolve to, an application's too, by name."""
    return sorted((stage for stage in _registry.values() if issubclass(stage, kind)), key=lambda stage: stage.__name__.lower())


def resolve_stage(argument: str, value: object, kind: type[AnyStage]) -> AnyStage:
    """A stage from a stage, a name or what `serialize` returned.

    Args:
        argument: name of the argument that received `value`, for the error.
        value: a stage of class `kind`, the name of one (`"rice"`, `"log_quantizer"`), or a dictionary.
        kind: `Sparsifier`, `IndexCodec` or `ValueCodec`.

    Raises:
        ValueError: for anything else.
    """
    if isinstance(value, kind):
        return value
    name, config = (value.get("class_name"), value.get("config", {})) if isinstance(value, dict) else (value, {})
    return resolve_class(argument, name, kind, received=value).from_config(config)


def resolve_class(argument: str, name: object, kind: type[AnyStage], received: object = None) -> type[AnyStage]:
    """The registered stage of a name; errors as of `resolve_stage`, about `received` or the name."""
    stage_class = _registry.get(_key(name)) if isinstance(name, str) else None
    if stage_class is None or not issubclass(stage_class, kind):
        names = ", ".join(stage.__name__ for stage in registered_stages(kind))
        value = name if received is None else received
        raise ValueError(f"`{argument}` must be of class {kind.__name__}, or the name of one: {names}. Received: {argument}={value!r}")
    return stage_class


def _serialize(value: Any) -> object:
    if isinstance(value, Stage):
        return serialize(value)
    if hasattr(value, "get_config"):  # a learning-rate schedule of Keras 2 or 3
        return {"module": type(value).__module__, "class_name": type(value).__name__, "config": value.get_config()}
    if is_variable(value):
        with tf.init_scope():  # a step may be being traced
            return np.asarray(value.numpy()).item()
    if isinstance(value, np.generic):
        return value.item()
    return value


def _deserialize(value: object) -> object:
    if not (isinstance(value, dict) and "class_name" in value):
        return value
    if "module" in value:
        return getattr(importlib.import_module(value["module"]), value["class_name"]).from_config(value["config"])
    return resolve_stage("class_name", value, Stage)


def is_number(value: object) -> bool:
    """Whether `value` is a real number, of Python or NumPy; True and False are none."""
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def check_integer(name: str, value: object, minimum: int, maximum: int) -> int:
    """`value`, if it is an integer in [minimum, maximum].

    Raises:
        ValueError: otherwise.
    """
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or not minimum <= int(value) <= maximum:
        raise ValueError(f"`{name}` must be an integer in [{minimum}, {maximum}]. Received: {name}={value!r}")
    return int(value)
