"""The shapes that engines are measured on, as numbers: peers build the same ones from them."""

from __future__ import annotations

SHAPES = ("chain", "fan", "grid", "independent")


def parents(shape: str, size: int) -> list[tuple[int, ...]]:
    """The steps that each step reads, by number. A grid has the nearest square number of steps."""
    if shape == "chain":
        return [(number - 1,) if number else () for number in range(size)]
    if shape == "fan":
        return [(), *[(0,)] * (size - 2), tuple(range(1, size - 1))]
    if shape == "grid":
        return _grid(round(size**0.5))
    return [()] * size


def _grid(width: int) -> list[tuple[int, ...]]:
    found: list[tuple[int, ...]] = []
    for number in range(width * width):
        left = (number - 1,) if number % width else ()
        above = (number - width,) if number >= width else ()
        found.append(left + above)
    return found
