"""The whole way once, on real text and with no network: documents to an evaluated MoE model.

The text is what every installation holds: the standard library's sources, its pydoc topics and the
files of the runtime packages. `source` takes any other source instead, for example
`hf://datasets/NAME@COMMIT`, `https://...`, `gs://...`, `s3://...` or a local glob.
"""

from __future__ import annotations

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
    from pipeline.step import Step


def dag(
    *,
    max_bytes: int = 20_000_000,
    source: str | None = None,
    vocab_size: int = 4_096,
    num_updates: int = 100,
) -> dict[str, Step]:
    """Download, deduplicate, split, tokenize, pack at two lengths, pretrain, evaluate."""
    origin = InstalledText(max_bytes=max_bytes) if source is None else source_from(source)
    documents = deduplicate(download(origin), threshold=0.7)
    train, held_out = split(documents, held_out=0.02)
    tokenizer = train_tokenizer(train, vocab_size=vocab_size, max_text_bytes=8_000_000)
    tokens = tokenize(train, tokenizer)
    packed = pack(tokens, sequence_length=4_096)
    checkpoint = pretrain(
        packed,
        model=TINY_MOE,
        train=TrainConfig(
            num_updates=num_updates, batch_size=1, learning_rate=0.003, checkpoint_every=20
        ),
        resources=Resources(cpus=2),
    )
    return {
        "packing": compare_packing(pack(tokens, sequence_length=65_536), packed),
        "checkpoint": checkpoint,
        "report": evaluate(checkpoint, held_out, resources=Resources(cpus=2)),
    }
