"""Declares the step that trains a byte-level BPE tokenizer on documents."""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.errors import ConfigError
from pipeline.step import Resources, Step
from steps.kinds import Kind, check_kind

_NUM_BYTES = 256


@dataclass(frozen=True, kw_only=True)
class TrainTokenizerConfig:
    """What decides the merges.

    `vocab_size` counts the 256 bytes and the end-of-text token. Training reads documents in order
    of doc_id, which is random, until it has `max_text_bytes`.
    """

    vocab_size: int = 4_096
    max_text_bytes: int = 1_000_000_000
    end_of_text: str = "<|endoftext|>"

    def __post_init__(self) -> None:
        least = _NUM_BYTES + 1
        if self.vocab_size < least:
            msg = (
                f"vocab_size={self.vocab_size} must be at least {least}:"
                " 256 bytes and one end-of-text token"
            )
            raise ConfigError(msg)
        if self.max_text_bytes < 1:
            msg = f"max_text_bytes={self.max_text_bytes} must be at least 1"
            raise ConfigError(msg)
        if not self.end_of_text:
            msg = "end_of_text='' must not be empty"
            raise ConfigError(msg)


def train_tokenizer(
    documents: Step,
    *,
    vocab_size: int = 4_096,
    max_text_bytes: int = 1_000_000_000,
    end_of_text: str = "<|endoftext|>",
) -> Step:
    """A step that publishes `tokenizer.json`, loadable by `tokenizers` and `transformers`."""
    check_kind(documents, Kind.DOCUMENTS, of="train_tokenizer", role="documents")
    return Step(
        "train_tokenizer",
        "steps.data.train_tokenizer_body:run",
        config=TrainTokenizerConfig(
            vocab_size=vocab_size, max_text_bytes=max_text_bytes, end_of_text=end_of_text
        ),
        inputs={"documents": documents},
        resources=Resources(cpus=2),
    )
