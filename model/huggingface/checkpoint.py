"""Weights as a family's files, and back: other names, matrices transposed, experts apart.

Values are moved, never computed, so that a way there and back gives the same bits in fp32. Both
ways hold one tensor at a time in memory; the largest of ours has all experts of a layer.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from model.precision import PARAMETER_DTYPE
from model.tensor_files import TensorFiles, size_bytes, write_tensors
from model.weights import tensor_shapes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path
    from typing import Any, BinaryIO

    from model.config import ModelConfig
    from model.huggingface.families import Family

_LAYER = re.compile(r"(?<=blocks\.)\d+")
_STACKED = 3  # axes of a matrix per expert, or per net side by side
_COMPUTED = re.compile(r"rotary_emb\.inv_freq$")  # some old checkpoints store it


@dataclass(frozen=True, kw_only=True)
class Piece:
    """One tensor of theirs, and where it lies in ours: at `index` of the first axis, if any."""

    theirs: str
    ours: str
    index: int | None
    transposed: bool


def pieces(family: Family, shapes: Mapping[str, tuple[int, ...]]) -> list[Piece]:
    """Every tensor of theirs, in the order of ours."""
    found = []
    for ours, shape in shapes.items():
        layer = _LAYER.search(ours)
        pattern = _LAYER.sub("{layer}", ours)
        transposed = pattern in family.transposed
        names = family.transposed if transposed else family.as_they_are
        for index in range(shape[0]) if len(shape) == _STACKED else (None,):
            theirs = names[pattern].format(layer=layer and layer[0], expert=index)
            found.append(Piece(theirs=theirs, ours=ours, index=index, transposed=transposed))
    return found


def export_weights(
    weights: Path,
    open_file: Callable[[str], AbstractContextManager[BinaryIO]],
    *,
    config: ModelConfig,
    family: Family,
    dtype: torch.dtype,
    shard_bytes: int,
) -> dict[str, Any]:
    """Write shards of at most `shard_bytes`, or of one tensor, and return their index."""
    files = TensorFiles([weights])
    shapes = tensor_shapes(config)
    by_name = {piece.theirs: piece for piece in pieces(family, shapes)}
    theirs = {name: _their_shape(piece, shapes[piece.ours]) for name, piece in by_name.items()}
    sizes = {name: size_bytes(shape, dtype) for name, shape in theirs.items()}
    groups = _groups(sizes, shard_bytes)

    def read(name: str) -> torch.Tensor:
        piece = by_name[name]
        value = files.tensor(piece.ours, piece.index)
        return value.T if piece.transposed else value

    weight_map: dict[str, str] = {}
    for number, names in enumerate(groups, 1):
        path = f"model-{number:05d}-of-{len(groups):05d}.safetensors"
        with open_file(path) as sink:
            write_tensors(sink, {name: theirs[name] for name in names}, read, dtype=dtype)
        weight_map |= dict.fromkeys(names, path)
    return {"metadata": {"total_size": sum(sizes.values())}, "weight_map": weight_map}


def import_weights(
    shards: Sequence[Path], sink: BinaryIO, *, config: ModelConfig, family: Family
) -> None:
    """Write the weights that shards of theirs hold as one file of ours, in fp32.

    Raises:
        ValueError: a tensor is missing, one too many, or of another shape than the config says.

    """
    files = TensorFiles(shards)
    shapes = tensor_shapes(config)
    found = pieces(family, shapes)
    expected = {piece.theirs: _their_shape(piece, shapes[piece.ours]) for piece in found}
    _check_shapes(expected, files.shapes, tied_head=config.tied_head)
    by_name: dict[str, list[Piece]] = {}
    for piece in found:
        by_name.setdefault(piece.ours, []).append(piece)

    def read(name: str) -> torch.Tensor:
        value = torch.empty(shapes[name], dtype=PARAMETER_DTYPE)
        for piece in by_name[name]:
            target = value if piece.index is None else value[piece.index]
            source = files.tensor(piece.theirs)
            target.copy_(source.T if piece.transposed else source)
        return value

    write_tensors(sink, shapes, read, dtype=PARAMETER_DTYPE)


def _their_shape(piece: Piece, ours: tuple[int, ...]) -> tuple[int, ...]:
    shape = ours if piece.index is None else ours[1:]
    return shape[::-1] if piece.transposed else shape


def _groups(sizes: Mapping[str, int], limit: int) -> list[list[str]]:
    """Names in order, cut where the next one would exceed the limit."""
    groups: list[list[str]] = []
    filled = 0
    for name, size in sizes.items():
        if not groups or filled + size > limit:
            groups.append([])
            filled = 0
        groups[-1].append(name)
        filled += size
    return groups


def _check_shapes(
    expected: Mapping[str, tuple[int, ...]],
    found: Mapping[str, tuple[int, ...]],
    *,
    tied_head: bool,
) -> None:
    ignored = {"lm_head.weight"} if tied_head else set()
    for name in sorted(expected.keys() | (found.keys() - ignored)):
        if expected.get(name) == found.get(name) or _COMPUTED.search(name):
            continue
        msg = (
            f"tensor {name!r} of the checkpoint has shape {found.get(name)}, its config.json means "
            f"{expected.get(name)}; both must come from one checkpoint"
        )
        raise ValueError(msg)
