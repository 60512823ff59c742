"""The unigram model: each token's frequency in the training tokens, with one added to all.

It is the least that a language model must beat, and it gives the first token of a document its
probability: nothing stands before it, so that the model has nothing to predict it from.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from steps.token_store import TokenStore

CHUNK_TOKENS = 1_000_000


def unigram_nats(store: TokenStore) -> NDArray[np.float64]:
    """Cost in nats of every token id."""
    counts = np.ones(store.facts["vocab_size"], np.int64)
    for tokens in _chunks(store):
        counts += np.bincount(tokens, minlength=counts.size)
    return np.asarray(np.log(counts.sum()) - np.log(counts))


def _chunks(store: TokenStore) -> Iterator[NDArray[Any]]:
    """Documents end to end, many at a time: a count costs as much as the vocabulary is large."""
    held: list[NDArray[Any]] = []
    size = 0
    for rank in range(store.num_documents):
        held.append(store.tokens(rank))
        size += held[-1].size
        if size >= CHUNK_TOKENS:
            yield np.concatenate(held)
            held, size = [], 0
    if held:
        yield np.concatenate(held)
