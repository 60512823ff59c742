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
from steps.data.hub_listing import declared_patterns, unlisted

if TYPE_CHECKING:
    from collections.abc import Iterable

    from huggingface_hub.hf_api import DatasetInfo

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
        info = api.dataset_info(source.dataset, revision=source.revision)
        commit = info.sha or source.revision
        paths = _split_paths(source, info, commit)
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
        provenance={
            "dataset": source.dataset,
            "commit": commit,
            "split": source.split,
            **_stated(info),
        },
        pinned=not source.unpinned,
    )


def _stated(info: DatasetInfo) -> dict[str, str]:
    """What the hub's page says of licence and date, as far as it does."""
    found = {}
    licence = info.card_data.license if info.card_data is not None else None
    if licence:
        found["licence"] = licence if isinstance(licence, str) else ", ".join(licence)
    if info.last_modified is not None:
        found["modified"] = f"{info.last_modified:%Y-%m-%dT%H:%M:%SZ}"
    return found


def _split_paths(source: HubDataset, info: DatasetInfo, commit: str) -> list[str]:
    builder = load_dataset_builder(source.dataset, source.config, revision=commit)
    prefix = f"hf://datasets/{source.dataset}@{commit}/"
    splits = {
        str(split): sorted(str(url).removeprefix(prefix) for url in urls)
        for split, urls in (builder.config.data_files or {}).items()
    }
    if source.split not in splits:
        found = ", ".join(sorted(splits)) or "none"
        msg = f"dataset {source.dataset!r} has no split {source.split!r}; it has {found}"
        raise SourceError(msg)
    configs = None if info.card_data is None else info.card_data.get("configs")
    patterns = declared_patterns(configs or (), builder.config.name, source.split)
    left_out = unlisted(
        splits[source.split],
        [sibling.rfilename for sibling in info.siblings or ()],
        patterns=patterns,
        others={path for paths in splits.values() for path in paths},
    )
    if left_out:
        msg = (
            f"the hub's list of {source.dataset!r} names {len(left_out)} files of split "
            f"{source.split!r} that its listing left out, the first {left_out[0]!r}: the listing "
            "was cut short. Try again later"
        )
        raise SourceError(msg)
    return splits[source.split]


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
