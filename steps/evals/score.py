"""Scores documents with a model: nats of every token, and what its routers did meanwhile."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import torch

from kernels.linear_cross_entropy import IGNORED
from model.batch import TokenBatch
from model.objective import objective
from pipeline.errors import LedgerError
from steps.evals.windows import Window, groups, windows

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from model.router import RouterReport
    from model.transformer import Transformer

# Windows that are read together. Pieces do not see each other, so that it changes speed alone,
# except under a capacity, for which the tokens of a batch compete.
BATCH_TOKENS = 8_192


@dataclass
class Score:
    """Sums over all scored tokens; loads and drops are per layer and expert."""

    nats: float = 0.0
    scored_tokens: int = 0
    read_tokens: int = 0
    chosen_LE: NDArray[np.int64] = field(default_factory=lambda: np.zeros((0, 0), np.int64))
    dropped_LE: NDArray[np.int64] = field(default_factory=lambda: np.zeros((0, 0), np.int64))


@torch.no_grad()
def score_documents(
    model: Transformer,
    documents: Sequence[NDArray[np.int64]],
    *,
    context: int,
    tell: Callable[[int], None],
) -> Score:
    """Score every token of every document but its first; `tell` hears how many are done.

    Raises:
        LedgerError: a token was scored twice or never.

    """
    shape = (model.config.num_layers, model.config.experts.num_experts)
    total = Score(chosen_LE=np.zeros(shape, np.int64), dropped_LE=np.zeros(shape, np.int64))
    for group in groups(windows([len(d) for d in documents], context), BATCH_TOKENS):
        batch = _to_batch(group, documents)
        result = objective(model, batch)
        total.nats += float(result.nll_N.double().sum())
        total.scored_tokens += int((batch.targets_N != IGNORED).sum())
        total.read_tokens += batch.tokens_N.shape[0]
        total.chosen_LE += _per_layer(result.routers, "chosen_E")
        total.dropped_LE += _per_layer(result.routers, "dropped_E")
        tell(total.scored_tokens)
    expected = sum(len(document) - 1 for document in documents)
    if total.scored_tokens != expected:
        msg = f"scored {total.scored_tokens} tokens, but the documents have {expected} to predict"
        raise LedgerError(msg)
    return total


def _to_batch(group: Sequence[Window], documents: Sequence[NDArray[np.int64]]) -> TokenBatch:
    tokens, targets = [], []
    for window in group:
        document = documents[window.document][window.start : window.end]
        following = np.append(document[1:], IGNORED)
        following[: window.first - 1 - window.start] = IGNORED
        tokens.append(document)
        targets.append(following)
    return TokenBatch(
        tokens_N=torch.from_numpy(np.concatenate(tokens)),
        targets_N=torch.from_numpy(np.concatenate(targets)),
        lengths=tuple(window.length for window in group),
    )


def _per_layer(routers: Sequence[RouterReport], name: str) -> NDArray[np.int64]:
    return np.stack([getattr(report, name).numpy() for report in routers])
