"""A small recipe whose steps a test can hold in the middle: one of each kind of step."""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.step import Resources, Step


@dataclass(frozen=True, kw_only=True)
class DrawConfig:
    """`count` numbers are written."""

    count: int = 100


def draw(config: DrawConfig) -> Step:
    """A plain step: half of its file is written before the gate, half behind it."""
    return Step("draw", "crash_bodies:draw", config=config)


def square(numbers: Step) -> Step:
    """A step that fans out."""
    return Step(
        "square",
        "crash_bodies:square",
        inputs={"numbers": numbers},
        resources=Resources(cpus=0),
    )


def train(squares: Step) -> Step:
    """A step that saves its state after every update."""
    return Step("train", "crash_bodies:train", inputs={"squares": squares})


def report(trained: Step) -> Step:
    """The end of the chain, with a summary."""
    return Step("report", "crash_bodies:report", inputs={"trained": trained})


def dag(count: int = 100) -> dict[str, Step]:
    """draw -> square -> train -> report."""
    return {"report": report(train(square(draw(DrawConfig(count=count)))))}


def broken() -> dict[str, Step]:
    """A step that fails, one that needs it, one with a bad shard, and one that is well."""
    numbers = draw(DrawConfig())
    failing = Step("divide", "crash_bodies:divide", inputs={"numbers": numbers})
    return {
        "skipped": report(failing),
        "halve": Step("halve", "crash_bodies:halve", resources=Resources(cpus=0)),
        "independent": Step("total", "crash_bodies:total", inputs={"numbers": numbers}),
    }


def twice() -> Step:
    """A step that fans out twice over equal shards."""
    return Step("two_maps", "crash_bodies:two_maps", resources=Resources(cpus=0))


def unsteady() -> Step:
    """A step that writes other bytes each time: what a rerun is there to find."""
    return Step("unsteady", "crash_bodies:unsteady")
