"""The size of a named model as one JSON value, of which `seaglass scaling size` shows a table."""

from __future__ import annotations

import difflib
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from model.counts import count_parameters
from model.presets import PRESETS
from model.size import Mesh, all_to_all_per_layer, flops_per_token, memory_per_device
from pipeline.errors import UsageError

if TYPE_CHECKING:
    from model.config import ModelConfig

_AXES = ("replica", "data", "expert")


def preset(name: str) -> ModelConfig:
    """The model of that name.

    Raises:
        UsageError: there is none.

    """
    if name not in PRESETS:
        near = difflib.get_close_matches(name, PRESETS, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(PRESETS)}"
        msg = f"no preset is named {name!r}; {hint}"
        raise UsageError(msg)
    return PRESETS[name]


def mesh_from(text: str) -> Mesh:
    """A mesh from `AXIS=N,...`; an axis that is not named has one device.

    >>> mesh_from("data=2,expert=8").num_devices
    16

    Raises:
        UsageError: another form, another axis, or a size below 1.

    """
    sizes: dict[str, int] = {}
    for part in filter(None, text.split(",")):
        name, _, size = part.partition("=")
        if name not in _AXES or name in sizes or not size.isdecimal():
            msg = f"--mesh {text}: {part!r} must be one of {', '.join(_AXES)}, once, as AXIS=N"
            raise UsageError(msg)
        sizes[name] = int(size)
    try:
        return Mesh(**sizes)
    except ValueError as error:
        msg = f"--mesh {text}: {error}"
        raise UsageError(msg) from None


def size_report(
    name: str, mesh: Mesh, *, sequence_length: int, tokens_per_device: int
) -> dict[str, Any]:
    """All that `model.size` and `model.counts` say of a preset.

    Raises:
        UsageError: no such preset, or its experts do not fit the mesh.

    """
    config = preset(name)
    counts = count_parameters(config)
    try:
        memory = memory_per_device(config, mesh, tokens=tokens_per_device)
    except ValueError as error:
        msg = f"preset {name!r}: {error}"
        raise UsageError(msg) from None
    traffic = all_to_all_per_layer(config, mesh, tokens=tokens_per_device)
    totals = {
        "total": counts.total,
        "active": counts.active,
        "active_by_marin": counts.active_by_marin,
    }
    return {
        "preset": name,
        "sequence_length": sequence_length,
        "mesh": asdict(mesh),
        "tokens_per_device": tokens_per_device,
        "parameters": {**totals, "by_kind": asdict(counts)},
        "flops_per_token": asdict(flops_per_token(config, sequence_length)),
        "memory_bytes_per_device": {"total": memory.total, **asdict(memory)},
        "all_to_all_bytes_per_layer": {"update": traffic.update, **asdict(traffic)},
    }
