"""A recipe of trivial steps, in the shapes that engines are measured on.

seaglass plan benchmarks/trivial.py --set shape=grid --set size=10000
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.shapes import parents
from pipeline.step import Step

if TYPE_CHECKING:
    from pipeline.body import Inputs, Output


@dataclass(frozen=True, kw_only=True)
class TrivialConfig:
    """`number` tells the steps apart; `salt` changes the first one without changing its bytes."""

    number: int
    salt: int = 0


def work(config: TrivialConfig, inputs: Inputs, output: Output) -> None:
    """Write a few bytes."""
    del inputs
    output.write_json("number.json", config.number)


def dag(shape: str = "chain", size: int = 1_000, salt: int = 0) -> dict[str, Step]:
    """Steps of one shape. The target is the last one; of independent steps, every one."""
    steps: list[Step] = []
    for number, before in enumerate(parents(shape, size)):
        config = TrivialConfig(number=number, salt=0 if number else salt)
        inputs = {"before": tuple(steps[parent] for parent in before)} if before else {}
        steps.append(
            Step("work", "benchmarks.trivial:work", config=config, inputs=inputs, label=str(number))
        )
    if shape == "independent":
        return {f"s{number}": step for number, step in enumerate(steps)}
    return {"last": steps[-1]}


def first(salt: int = 0) -> dict[str, Step]:
    """The step that every shape begins with."""
    return dag("chain", 1, salt)
