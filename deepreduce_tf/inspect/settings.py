"""Which stages are tried, in which settings, and by what label they are shown."""

from __future__ import annotations

from collections.abc import Iterable

from deepreduce_tf.index_codecs import IndexCodec
from deepreduce_tf.stage import AnyStage, Stage, registered_stages, resolve_class

# The settings that are tried of a stage. One that is not named here, an application's too, is tried as it is by default.
SETTINGS: dict[str, list[dict[str, object]]] = {
    "BloomFilter": [{"fpr": fpr, "policy": policy} for policy in ("p0", "p2") for fpr in (0.1, 0.01, 0.001)],
    "Deflate": [{}, {"value": "qsgd"}, {"value": "log_quantizer"}],
    "LogQuantizer": [{"bits": 4}, {"bits": 8}],
    "QSGD": [{"bits": 2}, {"bits": 4}, {"bits": 8}],
    "SketchML": [{"bits": 2}, {"bits": 4}, {"bits": 8}],
    "ThreeLC": [{"multiplier": 1.0}, {"multiplier": 1.75}],
}


class CodecError(RuntimeError):
    """A codec that does not do what its kind promises."""


def stages_to_try(kind: type[AnyStage], names: Iterable[str] = ()) -> tuple[list[AnyStage], list[str]]:
    """The stages to try, each registered one in its settings, and why those are missing that need arguments.

    Args:
        kind: `IndexCodec` or `ValueCodec`.
        names: the stages to try; all when empty.

    Raises:
        ValueError: for a name that is not one of a stage of this kind.
    """
    argument = "index" if issubclass(kind, IndexCodec) else "value"
    named = [resolve_class(argument, name, kind) for name in names]
    stages: list[AnyStage] = []
    failures: list[str] = []
    for stage in dict.fromkeys(named or registered_stages(kind)):
        for arguments in SETTINGS.get(stage.__name__, [{}]):
            try:
                stages.append(stage(**arguments))
            except (TypeError, ValueError) as error:
                failures.append(f"{stage.__name__} cannot be made: {error}")
    return stages, failures


def label(stage: Stage) -> str:
    """A stage with those of its arguments that are not the default, or that `SETTINGS` varies."""
    varied = {name for arguments in SETTINGS.get(type(stage).__name__, ()) for name in arguments}
    try:
        default = type(stage)().get_config()
    except (TypeError, ValueError):  # an application's, with arguments that have no default
        default = {}
    shown = [name for name, value in stage.get_config().items() if name in varied or name not in default or value != default[name]]
    texts = [f"{name}={_text(getattr(stage, name))}" for name in shown]
    return f"{type(stage).__name__}({', '.join(texts)})".removesuffix("()")


def _text(value: object) -> str:
    return label(value) if isinstance(value, Stage) else f"{value:g}" if isinstance(value, float) else str(value)
