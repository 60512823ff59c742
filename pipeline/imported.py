"""Artifacts that no step of ours made: what `seaglass import` brought in, named by its content.

In a recipe `imported("<content digest>", name="olmo-ckpt")` is a step like any other. Its key
follows from the digest alone, so that it finds what was imported wherever that was done; it has
nothing to compute, so its body only says what is missing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

from pipeline.code import CodeClosure
from pipeline.errors import RecipeError, StepError
from pipeline.planning.dag import build
from pipeline.planning.identity import Identity
from pipeline.step import Step
from pipeline.store.layout import is_digest

if TYPE_CHECKING:
    from pipeline.body import Inputs, Output

BODY = "pipeline.imported:refuse"
STEP_NAME = "imported"
MISSING = "imported bytes that no store here has; import them, or name a store with --from"


@dataclass(frozen=True, kw_only=True)
class ImportedContent:
    """The bytes, and nothing else: where they came from is provenance."""

    content_digest: str

    def __post_init__(self) -> None:
        if not is_digest(self.content_digest):
            msg = (
                f"content_digest={self.content_digest!r} must be 64 hex digits; "
                "`seaglass import` prints the line for a recipe"
            )
            raise RecipeError(msg)


@dataclass(frozen=True, kw_only=True)
class ImportedKeys:
    """Under which digests imported bytes are published."""

    action_key: str
    recipe_digest: str
    definition: str
    code_digest: str


def imported(content_digest: str, *, name: str) -> Step:
    """The artifact with these bytes, once `seaglass import` has brought it in.

    `name` is for people and no part of identity.
    """
    config = ImportedContent(content_digest=content_digest)
    return Step(STEP_NAME, BODY, config=config, label=name)


def keys_of(step: Step) -> ImportedKeys:
    """The digests that every recipe with this step comes to."""
    code = CodeClosure.of_engine(step.body)
    dag = build({step.title: step})
    identity = Identity(dag, code_digest=lambda _: code.digest, manifest_digest=lambda _: "")
    return ImportedKeys(
        action_key=identity.action_key(step.title, {}),
        recipe_digest=identity.recipe_digests[step.title],
        definition=identity.definitions[step.title],
        code_digest=code.digest,
    )


def refuse(config: ImportedContent, inputs: Inputs, output: Output) -> NoReturn:
    """The body: there is nothing to compute."""
    del inputs, output
    msg = (
        f"artifact {config.content_digest} was imported, so nothing can compute it, and no store "
        "here has a whole copy; import the same bytes (seaglass import NAME PATH), or name a "
        "store that has them with --from"
    )
    raise StepError(msg)
