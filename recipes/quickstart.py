"""The whole way once, on real text and with no network: documents to an evaluated MoE model.

The text is what every installation holds: the standard library's sources, its pydoc topics and the
files of the runtime packages. `--set source=...` takes any other text instead, for example
`hf://datasets/ORG/NAME@COMMIT`, `https://...`, `gs://...`, `s3://...` or a glob of local files
(jsonl, also .gz and .zst, Parquet, Arrow, plain text).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from model.presets import TINY_MOE
from pipeline.step import Resources
from steps.data.compare_packing import compare_packing
from steps.data.deduplicate import deduplicate
from steps.data.download import download
from steps.data.pack import pack
from steps.data.source_names import source_from
from steps.data.sources import InstalledText
from steps.data.split import split
from steps.data.tokenize import tokenize
from steps.data.train_tokenizer import train_tokenizer
from steps.evals.evaluate import evaluate
from steps.train.pretrain import TrainConfig, pretrain

if TYPE_CHECKING:
    from pipeline.sources import Source
    from pipeline.step import Step


def dag(
    *,
    max_bytes: int = 20_000_000,
    source: str | None = None,
    text_field: str = "text",
    unpinned: bool = False,
    vocab_size: int = 4_096,
    num_updates: int = 100,
) -> dict[str, Step]:
    """Download, deduplicate, split, tokenize, pack at two lengths, pretrain, evaluate."""
    if source is None:
        origin: Source = InstalledText(max_bytes=max_bytes)
    else:
        origin = source_from(source, text_field=text_field, unpinned=unpinned)
    documents = deduplicate(download(origin), threshold=0.7)
    train, held_out = split(documents, held_out=0.02)
    tokenizer = train_tokenizer(train, vocab_size=vocab_size, max_text_bytes=8_000_000)
    tokens = tokenize(train, tokenizer)
    packed = pack(tokens, sequence_length=4_096)
    checkpoint = pretrain(
        packed,
        model=replace(TINY_MOE, vocab_size=vocab_size),
        train=TrainConfig(
            num_updates=num_updates, batch_size=1, learning_rate=0.003, checkpoint_every=20
        ),
        resources=Resources(cpus=2),
    )
    return {
        "packing": compare_packing(pack(tokens, sequence_length=65_536), packed),
        "checkpoint": checkpoint,
        "report": evaluate(checkpoint, held_out, max_bytes=200_000, resources=Resources(cpus=2)),
    }
