"""Error feedback: what was not sent is added to the next gradient."""

from __future__ import annotations

import weakref
import zlib
from collections.abc import Sequence

import tensorflow as tf

from deepreduce_tf.state_variables import make_variable, owner_of_variables


class Slot:
    """What is kept for one gradient between steps.

    Attributes:
        residual: float32 variable shaped like the gradient's dense form, or None.
        shape: the shape of that form, as far as it is known.
        name: of the residual in checkpoints.
    """

    def __init__(self, residual: tf.Variable | None, shape: tf.TensorShape | None = None) -> None:
        self.residual = residual
        self.shape = shape
        self.name = ""


class ErrorFeedback(tf.__internal__.tracking.AutoTrackable):
    """Owns one residual per variable, and the step counters.

    Karimireddy et al., "Error feedback fixes SignSGD and other gradient compression schemes", ICML 2019. The sum of all gradients is at
    any time the sum of all that was sent plus the residual.

    A residual belongs to a `tf.Variable` object, which is held weakly: it survives retracing, and ends with the variable. In checkpoints
    residuals are known by the order of their first exchange and their shape, since names of variables come from process-wide counters.
    Each rank saves and restores its own.

    Args:
        enabled: without it there are counters only.
    """

    def __init__(self, enabled: bool = True) -> None:
        super().__init__()
        self.enabled = enabled
        self._registry = _Registry()

    def slots(self, variables: Sequence[object], shapes: Sequence[tf.TensorShape], wanted: Sequence[bool]) -> list[Slot]:
        """The slot of each variable, made on first use.

        Args:
            variables: `tf.Variable`s, names of plain tensors (kept by name), or None (no residual).
            shapes: the dense shape of each gradient.
            wanted: whether each gradient needs a residual.
        """
        return [self._slot(*each) for each in zip(variables, shapes, wanted, strict=True)]

    def _slot(self, variable: object, shape: tf.TensorShape, wanted: bool) -> Slot:
        key = _identity(variable, shape)
        slot = self._registry.slots.get(key)
        if slot is None:
            slot = self._registry.slots[key] = Slot(None, shape)
            if variable is not None and not isinstance(variable, str):
                weakref.finalize(variable, _forget, weakref.ref(self), key)
        if slot.residual is None and wanted and self.enabled and variable is not None and shape.is_fully_defined():
            slot.name = self._registry.next_name("residual", "x".join(map(str, shape)) or "scalar")
            slot.residual = make_variable(slot.name, shape, tf.float32)
            setattr(self, slot.name, slot.residual)
        return slot

    def step(self, slots: Sequence[Slot]) -> tf.Variable:
        """The int64 counter of the exchanges of exactly these slots.

        Where some of them were exchanged in another company before (a layer was unfrozen), it goes on from there, and so do schedules.
        """
        key = (*(id(slot) for slot in slots), owner_of_variables())
        if key not in self._registry.steps:
            shapes = ";".join(str(slot.shape) for slot in slots)
            name = self._registry.next_name("step", f"{len(slots)}_{zlib.crc32(shapes.encode()):08x}")
            self._check_history(name)
            variable = make_variable(name, [], tf.int64, self._farthest(slots))
            setattr(self, name, variable)
            self._registry.steps[key] = (variable, list(slots))
        return self._registry.steps[key][0]

    def _check_history(self, name: str) -> None:
        """Raises a ValueError if a checkpoint that was read holds another exchange where this one is.

        Residuals are known by the order of their first exchange. After another first exchange they would go to the wrong variables.
        """
        number = name[: len("step_0000")]
        for waiting in self._deferred_dependencies:
            if waiting.startswith(number) and waiting != name:
                raise ValueError(
                    f"a checkpoint holds residuals by the order in which gradients were first exchanged, and it was another one: exchange "
                    f"{int(number[-4:])} had {waiting.split('_')[2]} gradients of other shapes. Received: {name.split('_')[2]} gradients. "
                    "Repeat the order (what was unfrozen later, unfreeze later), or begin with a new DeepReduce() and empty residuals."
                )

    def _farthest(self, slots: Sequence[Slot]) -> int:
        """The largest counter of the exchanges that one of these slots took part in. Not known while a TF1-style graph is built."""
        counters = [variable for variable, members in self._registry.steps.values() if any(slot in members for slot in slots)]
        with tf.init_scope():
            return max((int(v.numpy()) for v in counters if not v._in_graph_mode), default=0) if tf.executing_eagerly() else 0

    def residuals(self) -> dict[str, tf.Variable]:
        """All residuals by their name in checkpoints."""
        return {slot.name: slot.residual for slot in self._registry.slots.values() if slot.residual is not None}

    def reset(self) -> tf.Operation | None:
        """Sets all residuals to zero; in a TF1-style graph, returns the op that does."""
        zero = [residual.assign(tf.zeros(residual.shape)) for residual in self.residuals().values()]
        return None if tf.executing_eagerly() else tf.group(*zero)


class _Registry:
    """The slots and counters that there are, and the names of the next ones. Checkpoints must not follow it."""

    def __init__(self) -> None:
        self.slots: dict[object, Slot] = {}
        self.steps: dict[object, tuple[tf.Variable, list[Slot]]] = {}
        self._numbers: dict[str, int] = {}

    def next_name(self, kind: str, detail: str) -> str:
        number = self._numbers.get(kind, 0)
        self._numbers[kind] = number + 1
        return f"{kind}_{number:04d}_{detail}"


def _identity(variable: object, shape: tf.TensorShape) -> object:
    if variable is None or isinstance(variable, str):
        return (variable, str(shape), owner_of_variables())
    return id(variable)


def _forget(owner: weakref.ref[ErrorFeedback], key: object) -> None:
    """Frees the residual of a variable that is gone, and the counters of exchanges it took part in."""
    feedback = owner()
    if feedback is None:
        return
    slot = feedback._registry.slots.pop(key, None)
    if slot is None:
        return
    if slot.residual is not None:
        delattr(feedback, slot.name)
    for group, (variable, slots) in list(feedback._registry.steps.items()):
        if slot in slots:
            del feedback._registry.steps[group]
            name = next(name for name, value in vars(feedback).items() if value is variable)
            delattr(feedback, name)
