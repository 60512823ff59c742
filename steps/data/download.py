"""download: every file of a source, verified, as documents in normal form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pipeline.errors import ConfigError, RecipeError
from pipeline.step import Resources, Step

if TYPE_CHECKING:
    from pipeline.sources import Source


@dataclass(frozen=True, kw_only=True)
class DownloadConfig:
    """`shard_bytes` of source files make a shard of work, and bound the text of one output file."""

    shard_bytes: int = 64 << 20

    def __post_init__(self) -> None:
        if self.shard_bytes < 1:
            msg = f"shard_bytes={self.shard_bytes} must be at least 1"
            raise ConfigError(msg)


def download(
    source: Source,
    *,
    config: DownloadConfig | None = None,
    resources: Resources | None = None,
    label: str | None = None,
) -> Step:
    """Fetch and parse a source.

    Writes `documents-*.parquet` (DOCUMENTS), `quarantine-*.parquet` (every line or byte that could
    not be read as it is), `files-*.parquet` (what arrived), a ledger and a summary. It finishes
    only with every file of the manifest, at its size and checksum.
    """
    if isinstance(source, Step):
        msg = f"download got {source!r}; pass a source, such as LocalFiles of steps.data.sources"
        raise RecipeError(msg)
    return Step(
        "download",
        "steps.data.download_body:run",
        config=config or DownloadConfig(),
        inputs={"source": source},
        resources=resources or Resources(cpus=0),  # its shards do the work
        label=label,
    )
