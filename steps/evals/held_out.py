"""The documents that are scored, their tokens and their bytes, each counted once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow.parquet as pq
from tokenizers import Tokenizer

from pipeline.errors import ConfigError, LedgerError
from steps.formats import DOCUMENT_FILES, TOKENIZER_FILE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from pipeline.body import Artifact


@dataclass(frozen=True, kw_only=True)
class HeldOut:
    """Scored documents in order of their digest, and how many there are in all.

    The tokens of a document end with the end-of-document token, which is scored too: only then do
    the probabilities of all documents sum to 1.
    """

    texts: list[str]
    tokens: list[NDArray[np.int64]]
    available_documents: int
    available_bytes: int

    @property
    def num_bytes(self) -> int:
        """Bytes of the scored texts as UTF-8."""
        return sum(len(text.encode()) for text in self.texts)

    @property
    def num_tokens(self) -> int:
        """Tokens of the scored documents, ends included."""
        return sum(len(tokens) for tokens in self.tokens)


def read_held_out(
    documents: Artifact, tokenizer: Artifact, *, eos_id: int, max_bytes: int | None
) -> HeldOut:
    """Read, choose and tokenize.

    Raises:
        ConfigError: there is no document, or none that fits.
        LedgerError: the tokens do not spell the text.

    """
    sizes = sorted((doc_id, len(text.encode())) for doc_id, text in _read(documents))
    chosen = _choose(sizes, max_bytes)
    texts = {doc_id: text for doc_id, text in _read(documents) if doc_id in chosen}
    ordered = [texts[doc_id] for doc_id in sorted(texts)]
    return HeldOut(
        texts=ordered,
        tokens=_tokenize(ordered, tokenizer, eos_id),
        available_documents=len(sizes),
        available_bytes=sum(size for _, size in sizes),
    )


def _read(documents: Artifact) -> Iterator[tuple[str, str]]:
    for path in documents.paths(DOCUMENT_FILES):
        with pq.ParquetFile(documents.local(path)) as file:
            for batch in file.iter_batches(columns=["doc_id", "text"]):
                rows = batch.to_pydict()
                yield from zip(rows["doc_id"], rows["text"], strict=True)


def _choose(sizes: list[tuple[str, int]], max_bytes: int | None) -> set[str]:
    """Ids of the first documents in digest order whose bytes sum to at most `max_bytes`."""
    if not sizes:
        msg = "there is no held-out document; raise `held_out` of the split"
        raise ConfigError(msg)
    if max_bytes is None:
        return {doc_id for doc_id, _ in sizes}
    ends = np.cumsum([size for _, size in sizes])
    count = int(np.searchsorted(ends, max_bytes, side="right"))
    if count == 0:
        msg = f"max_bytes={max_bytes} holds no document; the first one has {sizes[0][1]} bytes"
        raise ConfigError(msg)
    return {doc_id for doc_id, _ in sizes[:count]}


def _tokenize(texts: list[str], artifact: Artifact, eos_id: int) -> list[NDArray[np.int64]]:
    tokenizer = Tokenizer.from_file(str(artifact.local(TOKENIZER_FILE)))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    tokenizer.encode_special_tokens = True  # their text in a document is plain text
    encoded = tokenizer.encode_batch_fast(texts, add_special_tokens=False)
    # Byte-level tokenizers write one character per byte.
    sizes = {index: len(token) for token, index in tokenizer.get_vocab().items()}
    for text, encoding in zip(texts, encoded, strict=True):
        spelled = sum(sizes[index] for index in encoding.ids)
        if spelled != len(text.encode()):
            msg = (
                f"a held-out document of {len(text.encode())} bytes became tokens of {spelled} "
                "bytes; bits per byte need a tokenizer that loses nothing"
            )
            raise LedgerError(msg)
    return [np.array([*encoding.ids, eos_id], np.int64) for encoding in encoded]
