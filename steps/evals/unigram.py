"""The unigram model: each token's frequency in the training tokens, with one added to all.

It is the least that a language model must beat, and it gives the first token of a document its
probability: nothing stands before it, so that the model has nothing to predict it from.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from steps.token_store import TokenStore


def unigram_nats(store: TokenStore) -> NDArray[np.float64]:
    """Cost in nats of every token id."""
    counts = np.ones(store.facts["vocab_size"], np.int64)
    for rank in range(store.num_documents):
        counts += np.bincount(store.tokens(rank), minlength=counts.size)
    return np.asarray(np.log(counts.sum()) - np.log(counts))
