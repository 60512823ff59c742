"""Declares the step that makes a token store of tokens that others have written.

The files come in by `seaglass import`, which keeps where they are from; this step only changes
how they lie. It reads what datatrove writes (`NAME.ds` with `NAME.ds.index`) and what Megatron
does (`NAME.bin` with `NAME.idx`).
"""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.errors import ConfigError
from pipeline.step import Resources, Step
from steps.kinds import Kind, check_kind

_MAX_VOCAB_SIZE = 1 << 31


@dataclass(frozen=True, kw_only=True)
class ImportTokensConfig:
    """What the files do not say: every id is below `vocab_size`, and `eos_id` ends a document."""

    vocab_size: int
    eos_id: int

    def __post_init__(self) -> None:
        if not 1 <= self.vocab_size <= _MAX_VOCAB_SIZE:
            msg = f"vocab_size={self.vocab_size} must be in 1..{_MAX_VOCAB_SIZE}"
            raise ConfigError(msg)
        if not 0 <= self.eos_id < self.vocab_size:
            msg = f"eos_id={self.eos_id} must be in 0..vocab_size-1={self.vocab_size - 1}"
            raise ConfigError(msg)


def import_tokens(files: Step, *, vocab_size: int, eos_id: int) -> Step:
    """A step that publishes a token store of the tokens in `files`, usually `imported(...)`."""
    check_kind(files, Kind.TOKEN_FILES, of="import_tokens", role="files")
    return Step(
        "import_tokens",
        "steps.data.import_tokens_body:run",
        config=ImportTokensConfig(vocab_size=vocab_size, eos_id=eos_id),
        inputs={"files": files},
        resources=Resources(cpus=0),
    )
