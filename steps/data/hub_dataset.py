"""Resolves `HubDataset`: which files make up a split, and what the hub vouches for each.

`datasets` knows how a repository's files form configs and splits, so it decides; the hub's listing
then gives the size of each file and its sha256 (large files) or git blob digest. Both are checked
against what is fetched.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from datasets import load_dataset_builder
from datasets.exceptions import DatasetNotFoundError
from huggingface_hub import HfApi
from huggingface_hub.errors import HfHubHTTPError
from huggingface_hub.hf_api import RepoFile

from pipeline.errors import SourceError
from pipeline.sources import SourceFile, SourceManifest
from steps.data.file_formats import format_of, options

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pipeline.sources import FileDigests
    from steps.data.sources import HubDataset

_BATCH = 500  # paths per request


def resolve(source: HubDataset, digests: FileDigests) -> SourceManifest:
    """All files of the split, sorted by their path in the repository.

    Raises:
        SourceError: the dataset, split or a file is not there, or the hub does not answer.

    """
    del digests  # the hub vouches for the bytes; they are not read at plan time
    api = HfApi()
    try:
        commit = api.dataset_info(source.dataset, revision=source.revision).sha or source.revision
        paths = _split_paths(source, commit)
        files = _files(api, source.dataset, commit, paths=paths)
    except (HfHubHTTPError, DatasetNotFoundError, OSError, ValueError) as error:
        msg = (
            f"dataset {source.dataset!r} at {source.revision} cannot be resolved: {error}; "
            "check its name, revision and config, and HF_TOKEN where it is gated"
        )
        raise SourceError(msg) from error
    _refuse_short(source, paths, files)
    return SourceManifest(
        files=tuple(files),
        options=options(name=source.name, text_field=source.text_field, stated=None),
        provenance={"dataset": source.dataset, "commit": commit, "split": source.split},
        pinned=not source.unpinned,
    )


def _split_paths(source: HubDataset, commit: str) -> list[str]:
    builder = load_dataset_builder(source.dataset, source.config, revision=commit)
    data_files = builder.config.data_files or {}
    if source.split not in data_files:
        found = ", ".join(sorted(map(str, data_files))) or "none"
        msg = f"dataset {source.dataset!r} has no split {source.split!r}; it has {found}"
        raise SourceError(msg)
    prefix = f"hf://datasets/{source.dataset}@{commit}/"
    return sorted(str(url).removeprefix(prefix) for url in data_files[source.split])


def _files(api: HfApi, dataset: str, commit: str, *, paths: list[str]) -> list[SourceFile]:
    files = []
    for start in range(0, len(paths), _BATCH):
        batch = paths[start : start + _BATCH]
        found = api.get_paths_info(dataset, batch, revision=commit, repo_type="dataset")
        files += [_described(dataset, commit, item) for item in found if isinstance(item, RepoFile)]
    return sorted(files, key=lambda file: file.name)


def _described(dataset: str, commit: str, item: RepoFile) -> SourceFile:
    format_of(item.path, None)
    return SourceFile(
        name=item.path,
        size_bytes=item.size,
        checksum=f"sha256:{item.lfs.sha256}" if item.lfs else f"git:{item.blob_id}",
        location=f"hf://datasets/{dataset}@{commit}/{item.path}",
    )


def _refuse_short(source: HubDataset, paths: list[str], files: Iterable[SourceFile]) -> None:
    """The split's own list and the hub's listing must agree: a listing may be cut short."""
    missing = set(paths) - {file.name for file in files}
    if missing:
        msg = (
            f"the hub lists {len(paths) - len(missing)} of {len(paths)} files of "
            f"{source.dataset!r}; missing is {min(missing)!r}. Try again later"
        )
        raise SourceError(msg)
