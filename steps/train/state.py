"""The resumable state of a training run: everything that the next update depends on.

Tensors go through torch.distributed.checkpoint under parameter names, so that a run can resume
with another number of processes. Its files hold fresh ids and a pickle: they are parts of an
attempt, never published.
"""

from __future__ import annotations

import json
import shutil
import warnings
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import torch
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.checkpoint.state_dict_loader import load
from torch.distributed.checkpoint.state_dict_saver import save

from steps.train.trainer import UpdateReport

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from pipeline.body import Output, State
    from steps.train.trainer import Trainer

_TENSORS = "tensors"
_CURVE = "curve.jsonl"


def save_state(trainer: Trainer, curve: Sequence[UpdateReport], output: Output) -> None:
    """Save the state after the last update of `curve`, under the number of the next one."""
    folder = output.scratch / "save"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with _single_process():
        save(_tensors(trainer), checkpoint_id=folder / _TENSORS, no_dist=True)
    (folder / _CURVE).write_bytes(curve_to_bytes(curve))
    files = {p.relative_to(folder).as_posix(): p for p in folder.rglob("*") if p.is_file()}
    num_done = len(curve)
    output.save_state(f"update-{num_done:08d}", files, {"updates": num_done})
    shutil.rmtree(folder)


def restore_state(trainer: Trainer, state: State, scratch: Path) -> list[UpdateReport]:
    """Put a trainer where the saved one was; returns the curve up to there."""
    folder = scratch / "restore"
    for path in state.paths():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(state.local(path), target)
    tensors = _tensors(trainer)
    with _single_process():
        load(tensors, checkpoint_id=folder / _TENSORS, no_dist=True)
    set_state_dict(
        trainer.model,
        trainer.optimizer,
        model_state_dict=tensors["model"],
        optim_state_dict=tensors["optimizer"],
    )
    torch.set_rng_state(tensors["rng"])
    curve = curve_from_bytes((folder / _CURVE).read_bytes())
    shutil.rmtree(folder)
    return curve


def _tensors(trainer: Trainer) -> dict[str, Any]:
    model, optimizer = get_state_dict(trainer.model, trainer.optimizer)
    return {"model": model, "optimizer": optimizer, "rng": torch.get_rng_state()}


@contextmanager
def _single_process() -> Iterator[None]:
    """Silence the one warning that torch gives even where `no_dist` says that this is meant."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="torch.distributed is disabled")
        yield


def curve_to_bytes(curve: Sequence[UpdateReport]) -> bytes:
    """One JSON object per line, keys sorted."""
    lines = [json.dumps(asdict(report), sort_keys=True, allow_nan=False) for report in curve]
    return "".join(line + "\n" for line in lines).encode()


def curve_from_bytes(data: bytes) -> list[UpdateReport]:
    """What `curve_to_bytes` wrote; floats come back exactly."""
    rows = [json.loads(line) for line in data.decode().splitlines()]
    return [UpdateReport(**{**row, "load_per_layer": tuple(row["load_per_layer"])}) for row in rows]
