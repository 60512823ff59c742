"""What two submitters race for: a step with files, shards and a state, and one that reads it."""

from pipeline.step import Step


def dag() -> dict[str, Step]:
    """write -> read."""
    written = Step("write", "tests.pipeline.bodies:write")
    return {"read": Step("read", "tests.pipeline.bodies:read", inputs={"text": written})}
