"""Every error that Seaglass raises on purpose, as one tree.

    SeaglassError
    |-- UsageError            wrong use: command line, recipe, config (exit code 2)
    |   |-- RecipeError       a recipe cannot be loaded, or did not return steps
    |   |-- ConfigError       a config value is out of its bounds
    |   |-- EncodingError     a value has no exact canonical encoding
    |   `-- CodeError         the source of a step's body cannot be found or followed
    |-- SourceError           a source is missing, short, changed or cannot be pinned
    |-- StoreError            the store refuses, lacks or contradicts something
    |   |-- CorruptError      bytes in the store differ from what their manifest says
    |   `-- FormatError       the store was written by a newer format
    |-- LedgerError           a step's documents, bytes or tokens do not add up
    |-- StepError             the body of a step failed
    `-- CancelledError        someone asked the step to stop

Messages name the value, the place, what was expected and the next move. They are shown and kept, so
secrets in them are masked, whoever raised them.
"""

from pipeline.redaction import redacted


class SeaglassError(Exception):
    """Base of all errors that carry a message for the user; anything else is a bug."""

    exit_code = 1

    def __str__(self) -> str:
        return redacted(super().__str__())


class UsageError(SeaglassError):
    """The command, recipe or config is wrong; nothing ran."""

    exit_code = 2


class RecipeError(UsageError):
    """A recipe cannot be loaded, or did not return steps."""


class ConfigError(UsageError, ValueError):
    """A config value is out of its bounds."""


class EncodingError(UsageError):
    """A value has no exact canonical encoding; the message carries its path."""


class CodeError(UsageError):
    """The source of a step's body cannot be found or followed."""


class SourceError(SeaglassError):
    """A source is missing, short, changed or cannot be pinned."""


class StoreError(SeaglassError):
    """The store refuses, lacks or contradicts something."""


class CorruptError(StoreError):
    """Bytes in the store differ from what their manifest says."""


class FormatError(StoreError):
    """The store was written by a newer format than this version reads."""


class LedgerError(SeaglassError):
    """A step's documents, bytes or tokens do not add up."""


class StepError(SeaglassError):
    """The body of a step, or one shard of it, failed: in which class, with which last log lines."""

    def __init__(self, message: str, *, failure: str = "user", log: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.failure = failure
        self.log = log


class CancelledError(SeaglassError):
    """Someone asked the step to stop."""
