"""Declares the step that turns documents into a token store."""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.errors import ConfigError
from pipeline.step import Resources, Step
from steps.kinds import Kind, check_kind

SPECIAL_TEXT = ("plain", "control")


@dataclass(frozen=True, kw_only=True)
class TokenizeConfig:
    """What decides the tokens, beside the tokenizer.

    `end_of_text` ends every document. `special_text` says what a special token's text means where
    it stands in a document: "plain" text, or a "control" token.
    """

    end_of_text: str = "<|endoftext|>"
    special_text: str = "plain"

    def __post_init__(self) -> None:
        if self.special_text not in SPECIAL_TEXT:
            msg = f"special_text={self.special_text!r} must be one of {SPECIAL_TEXT}"
            raise ConfigError(msg)


def tokenize(
    documents: Step,
    tokenizer: Step,
    *,
    end_of_text: str = "<|endoftext|>",
    special_text: str = "plain",
) -> Step:
    """A step that publishes a token store: one list of token ids per document."""
    check_kind(documents, Kind.DOCUMENTS, of="tokenize", role="documents")
    check_kind(tokenizer, Kind.TOKENIZER, of="tokenize", role="tokenizer")
    return Step(
        "tokenize",
        "steps.data.tokenize_body:run",
        config=TokenizeConfig(end_of_text=end_of_text, special_text=special_text),
        inputs={"documents": documents, "tokenizer": tokenizer},
        resources=Resources(cpus=0),
    )
