"""Trains a byte-level BPE: every text has an encoding, and decoding gives its bytes back.

Merges follow from counts, so that neither the order nor the sharding of documents moves a byte of
`tokenizer.json`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

from steps.data.ledger import Ledger
from steps.data.set_aside import plural
from steps.data.summary import megabytes
from steps.formats import DOCUMENT_FILES, TOKENIZER_FILE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pipeline.body import Artifact, Inputs, Output
    from steps.data.train_tokenizer import TrainTokenizerConfig

# Words with one leading mark or space, numbers in groups of three, runs of marks with their line
# ends, and white space as runs, so that indentation becomes one token. This is the expression of
# Llama 3 (Grattafiori et al., The Llama 3 Herd of Models, 2024), which fast engines know.
WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|"
    r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_BATCH_DOCUMENTS = 256


class _Sample(NamedTuple):
    """Train on documents up to and with `last_doc_id`; counts of those and of all."""

    last_doc_id: str
    documents: int
    text_bytes: int
    all_documents: int
    all_text_bytes: int


def run(config: TrainTokenizerConfig, inputs: Inputs, output: Output) -> None:
    """Train and publish `tokenizer.json`."""
    documents = inputs["documents"]
    sample = _sample(documents, config.max_text_bytes)
    tokenizer = _train(_texts(documents, sample, output), config)
    output.write_bytes(TOKENIZER_FILE, tokenizer.to_str(pretty=True).encode() + b"\n")
    output.write_json("tokenizer_config.json", _transformers_config(config))
    ledger = Ledger()
    ledger.enter(documents=sample.all_documents, bytes=sample.all_text_bytes)
    ledger.remove(
        "beyond max_text_bytes",
        documents=sample.all_documents - sample.documents,
        bytes=sample.all_text_bytes - sample.text_bytes,
    )
    ledger.leave(documents=sample.documents, bytes=sample.text_bytes)
    ledger.write(output, step="train_tokenizer")
    output.write_json("summary.json", _summary(config, sample, tokenizer))


def _sample(documents: Artifact, max_text_bytes: int) -> _Sample:
    """All documents, or those with the smallest doc_ids whose texts fit."""
    ids, sizes = [np.empty(0, "S32")], [np.empty(0, np.int64)]
    for path in documents.paths(DOCUMENT_FILES):
        file = pq.ParquetFile(documents.local(path))
        for batch in file.iter_batches(_BATCH_DOCUMENTS, columns=["doc_id", "text"]):
            ids.append(np.array(batch.column("doc_id").to_pylist(), "S32"))
            sizes.append(pc.binary_length(batch.column("text")).to_numpy().astype(np.int64))
    doc_ids, text_bytes = np.concatenate(ids), np.concatenate(sizes)
    order = np.argsort(doc_ids, kind="stable")
    count = int(np.searchsorted(np.cumsum(text_bytes[order]), max_text_bytes, side="right"))
    count = min(max(count, 1), doc_ids.size)  # one long document is better than none
    last = doc_ids[order[count - 1]] if count else b""
    chosen = doc_ids <= last
    return _Sample(
        last.decode(),
        int(chosen.sum()),
        int(text_bytes[chosen].sum()),
        doc_ids.size,
        int(text_bytes.sum()),
    )


def _texts(documents: Artifact, sample: _Sample, output: Output) -> Iterator[list[str]]:
    """The texts of the sample, in lists; shows the bytes read so far."""
    done = 0
    for path in documents.paths(DOCUMENT_FILES):
        file = pq.ParquetFile(documents.local(path))
        for batch in file.iter_batches(_BATCH_DOCUMENTS, columns=["doc_id", "text"]):
            chosen = pc.less_equal(batch.column("doc_id"), sample.last_doc_id)
            texts = batch.column("text").filter(chosen)
            done += pc.sum(pc.binary_length(texts)).as_py() or 0
            yield texts.to_pylist()
            output.progress(done=done / 1e6, total=sample.text_bytes / 1e6, unit="MB")


def _train(texts: Iterator[list[str]], config: TrainTokenizerConfig) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    to_bytes = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    split = pre_tokenizers.Split(Regex(WORDS), behavior="isolated")
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([split, to_bytes])
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=config.vocab_size,
        min_frequency=2,  # a pair that was seen once teaches nothing
        special_tokens=[config.end_of_text],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def _transformers_config(config: TrainTokenizerConfig) -> dict[str, object]:
    """What `transformers` wants to see beside `tokenizer.json`."""
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "eos_token": config.end_of_text,
        "clean_up_tokenization_spaces": False,
    }


def _summary(
    config: TrainTokenizerConfig, sample: _Sample, tokenizer: Tokenizer
) -> dict[str, object]:
    vocabulary = tokenizer.get_vocab_size()
    facts: dict[str, object] = {
        "vocabulary": f"{vocabulary:,}",
        "trained on": f"{plural(sample.documents, 'document')}, {megabytes(sample.text_bytes)}",
    }
    if vocabulary < config.vocab_size:
        facts["note"] = f"no pair is left that occurs twice, so fewer than {config.vocab_size:,}"
    return {"title": "Tokenizer", "facts": facts, "tables": []}
