"""Safetensors files read and written one tensor at a time, so that no model is in memory twice.

A file is written front to back from shapes that are known before any value is. Equal tensors are
equal bytes: the ones that `safetensors.torch.save` makes of them.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import torch
from safetensors import safe_open

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path
    from typing import BinaryIO

_CODES = {torch.float32: "F32", torch.bfloat16: "BF16"}
_READABLE = {"F32", "BF16", "F16"}
_ALIGNMENT = 8


class TensorFiles:
    """The tensors of some files by name; nothing is read before it is asked for."""

    def __init__(self, paths: Sequence[Path]) -> None:
        """Open the files.

        Raises:
            ValueError: a tensor is in no floating point format that is read here.

        """
        opened: list[Any] = [safe_open(path, framework="pt") for path in paths]  # has no types
        self._files: dict[str, Any] = {
            name: file for file in opened for name in sorted(file.keys())
        }
        slices = {name: file.get_slice(name) for name, file in self._files.items()}
        for name, part in slices.items():
            if part.get_dtype() not in _READABLE:
                msg = (
                    f"tensor {name!r} has type {part.get_dtype()}, which must be one of "
                    f"{sorted(_READABLE)}; convert the checkpoint first"
                )
                raise ValueError(msg)
        self.shapes = {name: tuple(part.get_shape()) for name, part in slices.items()}

    def tensor(self, name: str, index: int | None = None) -> torch.Tensor:
        """One tensor, or what is at an index of its first axis."""
        file = self._files[name]
        found: torch.Tensor = (
            file.get_tensor(name) if index is None else file.get_slice(name)[index]
        )
        return found


def size_bytes(shape: tuple[int, ...], dtype: torch.dtype) -> int:
    """Of a tensor."""
    return torch.Size(shape).numel() * dtype.itemsize


def write_tensors(
    sink: BinaryIO,
    shapes: Mapping[str, tuple[int, ...]],
    read: Callable[[str], torch.Tensor],
    *,
    dtype: torch.dtype,
) -> None:
    """Write one file; `read` is asked for each tensor in order of names, once."""
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    end = 0
    for name in sorted(shapes):
        start, end = end, end + size_bytes(shapes[name], dtype)
        header[name] = {
            "dtype": _CODES[dtype],
            "shape": list(shapes[name]),
            "data_offsets": [start, end],
        }
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % _ALIGNMENT)
    sink.write(len(text).to_bytes(8, "little") + text)
    for name in sorted(shapes):
        sink.write(_bytes(read(name), dtype))  # no name here holds it while the next is read


def _bytes(value: torch.Tensor, dtype: torch.dtype) -> memoryview:
    return value.to(dtype).contiguous().flatten().view(torch.uint8).numpy().data
