"""Which kind of artifact each step here publishes, so that a wrong input is refused by the recipe.

A step is known by its body. What another package's step or an import publishes is not known before
it runs, so that those pass everywhere.
"""

from __future__ import annotations

from enum import Enum

from pipeline.errors import RecipeError
from pipeline.step import Step


class Kind(Enum):
    """A kind of artifact; the value is how people read it."""

    DOCUMENTS = "documents"
    TOKENS = "a token store"
    MIXTURE = "a mixture"
    PACK = "a pack plan"
    ROWS = "packed rows"
    TOKENIZER = "a tokenizer"
    CHECKPOINT = "a checkpoint"
    HUGGINGFACE = "a checkpoint for transformers"
    TOKEN_FILES = "files of tokens"  # noqa: S105 - no secret
    REPORT = "a report"
    KEYS = "keys and matches"


PUBLISHED = {
    "steps.data.compare_packing_body:run": (Kind.REPORT,),
    "steps.data.decontaminate_body:run": (Kind.DOCUMENTS,),
    "steps.data.deduplicate_body:run": (Kind.DOCUMENTS,),
    "steps.data.download_body:run": (Kind.DOCUMENTS,),
    "steps.data.filter_documents_body:run": (Kind.DOCUMENTS,),
    "steps.data.import_tokens_body:run": (Kind.TOKENS,),
    "steps.data.judge_contamination_body:run": (Kind.REPORT,),
    "steps.data.match_duplicates_body:run": (Kind.KEYS,),
    "steps.data.match_evaluation_body:run": (Kind.KEYS,),
    "steps.data.materialize_body:run": (Kind.ROWS,),
    "steps.data.mix_body:run": (Kind.MIXTURE,),
    "steps.data.pack_body:run": (Kind.PACK,),
    "steps.data.sign_body:run": (Kind.KEYS,),
    "steps.data.split_body:run": (Kind.DOCUMENTS,),
    "steps.data.tokenize_body:run": (Kind.TOKENS,),
    "steps.data.train_tokenizer_body:run": (Kind.TOKENIZER,),
    "steps.evals.evaluate_body:evaluate": (Kind.REPORT,),
    "steps.train.huggingface_body:export_huggingface": (Kind.HUGGINGFACE,),
    "steps.train.huggingface_body:export_with_tokenizer": (Kind.HUGGINGFACE, Kind.TOKENIZER),
    "steps.train.huggingface_body:import_huggingface": (Kind.CHECKPOINT,),
    "steps.train.pretrain_body:pretrain": (Kind.CHECKPOINT,),
}

_MAKERS = {
    Kind.DOCUMENTS: "steps.data.download.download",
    Kind.TOKENS: "steps.data.tokenize.tokenize",
    Kind.MIXTURE: "steps.data.mix.mix",
    Kind.PACK: "steps.data.pack.pack",
    Kind.TOKENIZER: "steps.data.train_tokenizer.train_tokenizer",
    Kind.CHECKPOINT: "steps.train.pretrain.pretrain",
    Kind.HUGGINGFACE: "pipeline.imported.imported",
    Kind.TOKEN_FILES: "pipeline.imported.imported",
}


def check_kind(step: object, *kinds: Kind, of: str, role: str) -> None:
    """Refuse what is no step, or a step that is known to publish none of the kinds.

    Raises:
        RecipeError: it is refused; the message names what to pass.

    """
    move = f"pass a step made by {' or '.join(_MAKERS[kind] for kind in kinds)}"
    if not isinstance(step, Step):
        msg = f"{of} got a {type(step).__name__} as its {role}, which is no step; {move}"
        raise RecipeError(msg)
    published = PUBLISHED.get(step.body, kinds)
    if not set(published) & set(kinds):
        what = " and ".join(kind.value for kind in published)
        msg = f"{of} got {step!r} as its {role}, which publishes {what}; {move}"
        raise RecipeError(msg)


def check_documents(steps: object, *, of: str, role: str = "documents") -> tuple[Step, ...]:
    """One step that publishes documents, or a tuple of them, as a tuple."""
    found = steps if isinstance(steps, tuple) else (steps,)
    for step in found:
        check_kind(step, Kind.DOCUMENTS, of=of, role=role)
    return found


def check_packed(packed: Step, *, of: str) -> None:
    """Refuse what is no pack plan, or has not beside it what it is a plan for."""
    check_kind(packed, Kind.PACK, of=of, role="pack plan")
    if "tokens" not in packed.inputs:
        msg = (
            f"{of} got {packed!r}, which has no input 'tokens'; "
            f"pass a step made by {_MAKERS[Kind.PACK]}"
        )
        raise RecipeError(msg)
