"""The body of evaluation: every byte of the held-out documents, in bits, by five models."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from model.config_json import config_from_json
from model.initialization import initialize
from model.reproducible import reproducible
from model.transformer import Transformer
from model.weights import load_model
from steps.evals.compressed import compressed_sizes
from steps.evals.held_out import read_held_out
from steps.evals.score import score_documents
from steps.evals.unigram import unigram_nats
from steps.token_store import TokenStore

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np
    from numpy.typing import NDArray

    from model.config import ModelConfig
    from pipeline.body import Artifact, Inputs, Output
    from steps.evals.evaluate import EvaluateConfig
    from steps.evals.held_out import HeldOut
    from steps.evals.score import Score

METHOD = (
    "Every byte of the scored documents counts once, and so does the end of each document. "
    "Documents longer than the context are read in windows that overlap by half, and each token "
    "is scored in the first window that holds it. The first token of a document costs what the "
    "unigram model says, for all models alike. gzip and xz see all documents as one stream."
)


@dataclass(frozen=True, kw_only=True)
class _Scored:
    """The same documents under each model: `nats` by name, and the scores of real models."""

    nats: dict[str, float]
    scores: dict[str, Score]


def evaluate(config: EvaluateConfig, inputs: Inputs, output: Output) -> None:
    """Score the checkpoint and its baselines, and write the report."""
    about = inputs["checkpoint"].read_json("config.json")
    held_out = read_held_out(
        inputs["documents"],
        inputs["tokenizer"],
        eos_id=about["tokenizer"]["eos_id"],
        max_bytes=config.max_bytes,
    )
    unigram = unigram_nats(TokenStore(inputs["tokens"]))
    with reproducible(threads=output.cpus):
        models = dict(_models(about, inputs["checkpoint"]))
        scores = _score_models(models, held_out, output, context=about["sequence_length"])
    scored = _Scored(nats=_add_nats(scores, held_out, unigram), scores=scores)
    bits = _bits_per_byte(scored, held_out)
    output.write_json("report.json", _report(bits, held_out, scored))
    output.write_json("summary.json", _summary(bits, held_out, scored))


def _models(about: dict[str, Any], checkpoint: Artifact) -> Iterator[tuple[str, Transformer]]:
    """The checkpoint as trained, without its capacity if it has one, and untrained."""
    config = config_from_json(about["model"])
    trained = load_model(config, checkpoint.local("model.safetensors"))
    yield "trained", trained
    if config.experts.capacity_factor is not None:
        dropless = Transformer(_without_capacity(config))
        dropless.load_state_dict(trained.state_dict())
        yield "trained, dropless", dropless
    untrained = Transformer(config)
    initialize(untrained, seed=about["train"]["seed"])
    yield "untrained", untrained


def _without_capacity(config: ModelConfig) -> ModelConfig:
    return replace(config, experts=replace(config.experts, capacity_factor=None))


def _score_models(
    models: dict[str, Transformer], held_out: HeldOut, output: Output, *, context: int
) -> dict[str, Score]:
    scores: dict[str, Score] = {}
    total = len(models) * held_out.num_tokens
    for index, (name, model) in enumerate(models.items()):

        def tell(done: int, before: int = index * held_out.num_tokens) -> None:
            output.progress(done=before + done, total=total, unit="tokens")

        scores[name] = score_documents(model, held_out.tokens, context=context, tell=tell)
    return scores


def _add_nats(
    scores: dict[str, Score], held_out: HeldOut, unigram: NDArray[np.float64]
) -> dict[str, float]:
    """Nats of all tokens by model: first tokens cost what the unigram model says."""
    first = float(sum(unigram[tokens[0]] for tokens in held_out.tokens))
    nats = {name: score.nats + first for name, score in scores.items()}
    nats["unigram"] = float(sum(unigram[tokens].sum() for tokens in held_out.tokens))
    return nats


def _bits_per_byte(scored: _Scored, held_out: HeldOut) -> dict[str, float]:
    bits = {name: nats / math.log(2) for name, nats in scored.nats.items()}
    sizes = compressed_sizes(held_out.texts)
    bits.update({name: 8 * size for name, size in sizes.items()})
    return {name: value / held_out.num_bytes for name, value in bits.items()}


def _report(bits: dict[str, float], held_out: HeldOut, scored: _Scored) -> dict[str, Any]:
    return {
        "bits_per_byte": bits,
        "below_unigram": 1 - bits["trained"] / bits["unigram"],
        "documents": len(held_out.texts),
        "bytes": held_out.num_bytes,
        "tokens": held_out.num_tokens,
        "available_documents": held_out.available_documents,
        "available_bytes": held_out.available_bytes,
        "loss_nats_per_token": {
            name: nats / held_out.num_tokens for name, nats in scored.nats.items()
        },
        "routers": {
            name: {
                "chosen_per_layer_and_expert": score.chosen_LE.tolist(),
                "dropped_per_layer_and_expert": score.dropped_LE.tolist(),
                "read_tokens": score.read_tokens,
            }
            for name, score in scored.scores.items()
        },
        "method": METHOD,
    }


def _summary(bits: dict[str, float], held_out: HeldOut, scored: _Scored) -> dict[str, Any]:
    facts = {
        "held-out documents": f"{len(held_out.texts):,} of {held_out.available_documents:,}",
        "held-out bytes": f"{held_out.num_bytes:,} of {held_out.available_bytes:,}",
        "tokens": f"{held_out.num_tokens:,}",
        "dropped tokens": f"{int(scored.scores['trained'].dropped_LE.sum()):,}",
    }
    against = [
        [name, f"{value:.4f}", f"{100 * (value / bits['unigram'] - 1):+.1f} %"]
        for name, value in bits.items()
    ]
    loads = [
        [layer + 1, f"{row.max() / row.mean():.2f}", f"{row.min() / row.mean():.2f}"]
        for layer, row in enumerate(scored.scores["trained"].chosen_LE)
    ]
    return {
        "title": "Evaluation on held-out documents",
        "facts": facts,
        "tables": [
            {
                "title": "Bits per byte, lower is better",
                "columns": ["model", "bits per byte", "against unigram"],
                "rows": against,
            },
            {
                "title": "Expert load on held-out tokens",
                "columns": ["layer", "busiest / mean", "idlest / mean"],
                "rows": loads,
            },
        ],
    }
