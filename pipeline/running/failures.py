"""How a failure is named: its class, which decides whether a retry makes sense, and one line."""

from __future__ import annotations

import traceback
from pathlib import Path

from pipeline.errors import CancelledError, CorruptError, SeaglassError, StepError, StoreError
from pipeline.redaction import redacted
from pipeline.running.logs import shortened

RETRIED = frozenset({"memory", "node", "storage", "fenced"})


def classify(error: BaseException) -> str:
    """The class of failure that decides whether a retry makes sense."""
    if isinstance(error, StepError):
        return error.failure
    if isinstance(error, MemoryError):
        return "memory"
    if isinstance(error, CancelledError):
        return "cancelled"
    if isinstance(error, CorruptError):
        return "corrupt"
    if isinstance(error, StoreError | ConnectionError | TimeoutError):
        return "storage"
    return "user"


def describe(error: BaseException) -> str:
    """One line for people: our own messages as they are, others with their type and place."""
    if isinstance(error, SeaglassError):
        return str(error)
    text = str(error)
    frames = traceback.extract_tb(error.__traceback__)
    place = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
    if isinstance(error, SyntaxError) and error.filename:  # the last frame is the compiler's
        text, place = error.msg, f" ({Path(error.filename).name}:{error.lineno})"
    return f"{type(error).__name__}: {shortened(redacted(text))}{place}"
