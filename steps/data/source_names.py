"""Sources as people type them on a command line.

    hf://datasets/ORG/NAME@COMMIT          a dataset on the Hugging Face hub (?split=..&config=..)
    https://..., gs://..., s3://...        files behind URLs
    docs/**/*.jsonl.zst                    files on this machine

Several of one kind are separated by commas.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

from pipeline.errors import ConfigError
from steps.data.sources import HubDataset, LocalFiles, RemoteFiles

if TYPE_CHECKING:
    from pipeline.sources import Source

_HUB = "hf://datasets/"
_HUB_FORM = f"{_HUB}ORG/NAME@COMMIT?split=train&config=en"
_REMOTE = ("http://", "https://", "gs://", "gcs://", "s3://")
_HUB_OPTIONS = {"split", "config"}


def source_from(text: str, *, text_field: str = "text", unpinned: bool = False) -> Source:
    """The source that a string means.

    >>> source_from("data/*.jsonl.gz").patterns
    ('data/*.jsonl.gz',)

    Raises:
        ConfigError: the string is empty, mixes kinds or names an unknown protocol.

    """
    parts = tuple(part.strip() for part in text.split(",") if part.strip())
    if not parts:
        msg = f"source {text!r} is empty; give a glob, a URL, or {_HUB_FORM}"
        raise ConfigError(msg)
    if any(part.startswith("hf://") for part in parts):
        return _hub(parts, text_field)
    remote = [part.startswith(_REMOTE) for part in parts]
    if all(remote):
        return RemoteFiles(urls=parts, text_field=text_field, unpinned=unpinned)
    unknown = [part for part in parts if "://" in part and not part.startswith(_REMOTE)]
    if unknown:
        protocol = unknown[0].partition("://")[0] + "://"
        msg = (
            f"source {text!r}: {protocol} is no known protocol; give globs of files on this "
            f"machine, {', '.join(_REMOTE)}, or {_HUB_FORM}"
        )
        raise ConfigError(msg)
    if any(remote):
        msg = f"source {text!r} mixes local globs and URLs; use one kind"
        raise ConfigError(msg)
    return LocalFiles(patterns=parts, text_field=text_field)


def _hub(parts: tuple[str, ...], text_field: str) -> HubDataset:
    text = ",".join(parts)
    if len(parts) > 1:
        msg = f"source {text!r} must be one hub dataset alone: {_HUB_FORM}"
        raise ConfigError(msg)
    if not text.startswith(_HUB):
        msg = f"source {text!r} is not of the form {_HUB_FORM}"
        raise ConfigError(msg)
    split = urlsplit(text)
    dataset, _, revision = split.path.removeprefix("/").partition("@")
    options = {name: values[0] for name, values in parse_qs(split.query).items()}
    wrong = sorted(set(options) - _HUB_OPTIONS)
    if not dataset or not revision or wrong:
        what = f"has no option {wrong[0]!r}" if wrong else "needs a commit: ...@40-hex-digits"
        msg = f"source {text!r} {what}; the form is {_HUB_FORM}"
        raise ConfigError(msg)
    return HubDataset(
        dataset=dataset,
        revision=revision,
        split=options.get("split", "train"),
        config=options.get("config"),
        text_field=text_field,
    )
