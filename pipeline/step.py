"""What a DAG is made of: `Step` values, and the types that must never reach a digest.

Calling a step function returns a lazy `Step`; nothing runs, nothing is registered. Identity is
what the user wrote (`name`, `body`, `config`, `inputs`); `Resources` say what a machine needs to
run it and live in a type that the encoding refuses.
"""

from __future__ import annotations

import os
import re
from dataclasses import MISSING, dataclass, field, is_dataclass
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from pipeline.errors import ConfigError, RecipeError
from pipeline.paths import checked_label
from pipeline.redaction import MIN_CHARS, remember
from pipeline.sources import Source

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

Input: TypeAlias = "Step | Source | tuple[Step, ...]"

_BODY = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*")
_NAME = re.compile(r"[a-z][a-z0-9_]*")


def since(version: str, *, before: Any, default: Any = MISSING) -> Any:
    """A config field that was added in `version` of its step.

    `before` is what the step did while the field was not there. At that value it is left out of the
    encoding, so that older addresses stay where they were. It must never change; the `default`
    (at first the same) may.
    """
    default = before if default is MISSING else default
    if isinstance(before, list | dict | set):
        msg = f"before={before!r} of a field marked since={version!r} must be immutable"
        raise ConfigError(msg)
    return field(default=default, metadata={"since": version, "before": before})


@dataclass(frozen=True, kw_only=True)
class Secret:
    """The name of an environment variable whose value must appear nowhere.

    Only the name travels: a step lists its secrets in `Resources`, and its body asks for the value
    where it runs. From then on the value is masked in all that the engine keeps or shows.
    """

    __seaglass_not_identity__: ClassVar[bool] = True
    name: str

    def value(self) -> str:
        """The value in this process.

        Raises:
            ConfigError: the variable is not set here, or too short to be told from other text.

        """
        found = os.environ.get(self.name)
        if found is None:
            msg = f"secret {self.name}: no such environment variable where the step runs; set it"
            raise ConfigError(msg)
        if len(found) < MIN_CHARS:
            msg = (
                f"secret {self.name}: its value has {len(found)} characters; below {MIN_CHARS} it "
                "cannot be kept out of logs"
            )
            raise ConfigError(msg)
        remember(found)
        return found


@dataclass(frozen=True, kw_only=True)
class Resources:
    """What a machine needs to run a step. Never part of identity.

    `cpus` and `gpus` are counts (a coordinator that only fans out takes `cpus=0`), `memory_bytes`
    is a reservation, `retries` how often a failed attempt is tried again. `environment` is set for
    the step and is no place for secrets; `secrets` must be set already wherever the step runs.
    """

    __seaglass_not_identity__: ClassVar[bool] = True
    cpus: float = 1
    gpus: float = 0
    memory_bytes: int | None = None
    retries: int = 2
    environment: Mapping[str, str] = field(default_factory=dict)
    secrets: tuple[Secret, ...] = ()

    def __post_init__(self) -> None:
        for name in ("cpus", "gpus", "retries"):
            if getattr(self, name) < 0:
                msg = f"{name}={getattr(self, name)} must not be negative"
                raise ConfigError(msg)
        if not all(isinstance(secret, Secret) for secret in self.secrets):
            msg = "secrets must be a tuple of Secret(name=...): the names, never the values"
            raise ConfigError(msg)


@dataclass(frozen=True)
class NoConfig:
    """The config of a step that has none."""


class Step:
    """A node of the DAG: a body, its config and the inputs by role.

    Steps compare by identity. There is no generated eq, hash, repr or pickle, because on a chain
    of 100,000 steps each of them would recurse.
    """

    __slots__ = ("__weakref__", "body", "config", "inputs", "label", "name", "resources")

    def __init__(
        self,
        name: str,
        body: str,
        *,
        config: object = None,
        inputs: Mapping[str, Input] | None = None,
        resources: Resources | None = None,
        label: str | None = None,
    ) -> None:
        """Describe one step.

        Args:
            name: the definition's name, `[a-z][a-z0-9_]*`; part of identity.
            body: `package.module:function`, imported only in the worker.
            config: a frozen dataclass, or None.
            inputs: role -> step, source, or tuple of steps (an ordered role).
            resources: what a machine needs; not part of identity.
            label: tells two steps of one name apart on the screen; not part of identity.

        """
        if not _NAME.fullmatch(name):
            msg = f"step name {name!r} must match {_NAME.pattern}"
            raise RecipeError(msg)
        if not isinstance(body, str) or not _BODY.fullmatch(body):
            msg = f"body={body!r} of step {name!r} must be a string 'package.module:function'"
            raise RecipeError(msg)
        self.name = name
        self.body = body
        self.config = _checked_config(name, config)
        self.inputs = _checked_inputs(name, inputs or {})
        self.resources = resources or Resources()
        self.label = None if label is None else checked_label(label)

    @property
    def title(self) -> str:
        """The name people read: `name`, or `name-label`."""
        return self.name if self.label is None else f"{self.name}-{self.label}"

    def __repr__(self) -> str:
        return f"<Step {self.title}>"

    def __reduce__(self) -> Any:
        msg = f"{self!r} cannot be pickled: ship its plan instead"
        raise TypeError(msg)

    def parents(self) -> Iterator[Step]:
        """The steps this one reads, in role order."""
        for value in self.inputs.values():
            if isinstance(value, Step):
                yield value
            elif isinstance(value, tuple):
                yield from value

    def sources(self) -> Iterator[tuple[str, Source]]:
        """The sources this one reads, by role."""
        for role, value in self.inputs.items():
            if isinstance(value, Source):
                yield role, value


_NO_CONFIG = NoConfig()


def _checked_config(name: str, config: object) -> object:
    if config is None:
        return _NO_CONFIG
    if not is_dataclass(config) or isinstance(config, type):
        msg = f"config of step {name!r} is {type(config).__name__}; expected a frozen dataclass"
        raise RecipeError(msg)
    if not type(config).__dataclass_params__.frozen:  # type: ignore[attr-defined]  # typeshed hides it
        msg = (
            f"config {type(config).__name__} of step {name!r} must be frozen: "
            "@dataclass(frozen=True)"
        )
        raise RecipeError(msg)
    return config


def _checked_inputs(name: str, inputs: Mapping[str, Input]) -> dict[str, Input]:
    for role, value in inputs.items():
        if not _NAME.fullmatch(role):
            msg = f"role {role!r} of step {name!r} must match {_NAME.pattern}"
            raise RecipeError(msg)
        if isinstance(value, Step | Source):
            continue
        if isinstance(value, tuple) and value and all(isinstance(item, Step) for item in value):
            continue
        shown = "an empty tuple" if value == () else type(value).__name__
        msg = (
            f"input {role!r} of step {name!r} is {shown}; "
            "expected a Step, a Source or a tuple of Steps, or no such role"
        )
        raise RecipeError(msg)
    return dict(inputs)
