"""What two submitters race for: a step with files, shards and a state, and one that reads it."""

from pipeline.step import Step


def small() -> Step:
    """A run that is mostly the driver's own business."""
    return Step("small", "tests.pipeline.bodies:write_one")


def unsteady() -> Step:
    """Other bytes each time."""
    return Step("unsteady", "tests.pipeline.bodies:write_other_bytes")


def dag() -> dict[str, Step]:
    """write -> read."""
    written = Step("write", "tests.pipeline.bodies:write")
    return {"read": Step("read", "tests.pipeline.bodies:read", inputs={"text": written})}
