"""Recipes of trivial steps in the shapes that planners are measured on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pipeline.step import Step

if TYPE_CHECKING:
    from pipeline.body import Inputs, Output

BODY = "benchmarks.trivial:work"


@dataclass(frozen=True, kw_only=True)
class TrivialConfig:
    """`number` tells the steps apart; `salt` changes the first one without changing its bytes."""

    number: int
    salt: int = 0


def work(config: TrivialConfig, inputs: Inputs, output: Output) -> None:
    """Write a few bytes."""
    del inputs
    output.write_json("number.json", config.number)


def first(salt: int = 0) -> dict[str, Step]:
    """The step that every shape begins with."""
    return {"first": _step(0, salt=salt)}


def chain(size: int, salt: int = 0) -> dict[str, Step]:
    """Each step reads the one before."""
    step = _step(0, salt=salt)
    for number in range(1, size):
        step = _step(number, before=step)
    return {"last": step}


def fan(size: int, salt: int = 0) -> dict[str, Step]:
    """One step that all but the last read, and the last reads these."""
    first = _step(0, salt=salt)
    middle = tuple(_step(number, before=first) for number in range(1, size - 1))
    last = Step("last", BODY, config=TrivialConfig(number=size), inputs={"all": middle})
    return {"last": last}


def grid(size: int, salt: int = 0) -> dict[str, Step]:
    """A square: each step reads its left and its upper neighbour."""
    width = round(size**0.5)
    above: list[Step] = []
    for row in range(width):
        line: list[Step] = []
        for column in range(width):
            near = {"left": line[-1]} if line else {}
            far = {"above": above[column]} if above else {}
            number = row * width + column
            line.append(_step(number, salt=0 if number else salt, **near, **far))
        above = line
    return {"last": above[-1]}


def independent(size: int, salt: int = 0) -> dict[str, Step]:
    """Steps that have nothing to do with each other."""
    return {f"s{number}": _step(number, salt=salt) for number in range(size)}


def _step(number: int, *, salt: int = 0, **inputs: Step) -> Step:
    config = TrivialConfig(number=number, salt=salt)
    return Step("work", BODY, config=config, inputs=inputs, label=str(number))
