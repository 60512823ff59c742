"""The documents that the store holds, as types. All are JSON with sorted keys.

Reading is strict: an unknown format is refused, a missing field is corruption, unknown fields are
kept out of the way so that a later minor version can add one.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar

from pipeline.encoding import digest
from pipeline.errors import CorruptError, FormatError
from pipeline.store.layout import FORMAT

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class FileEntry:
    """One file of an artifact: logical path, size, sha256."""

    path: str
    size_bytes: int
    sha256: str


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """All files of an artifact, sorted by path. `content_digest` is the root over them."""

    files: tuple[FileEntry, ...]

    @property
    def content_digest(self) -> str:
        """Digest over (path, size, sha256) of every file, wherever the bytes lie."""
        return digest(tuple((f.path, f.size_bytes, f.sha256) for f in self.files))

    @property
    def size_bytes(self) -> int:
        """Bytes of all files together."""
        return sum(f.size_bytes for f in self.files)

    def to_bytes(self) -> bytes:
        """The stored form."""
        return dump({"format": FORMAT, "files": [vars(entry) for entry in self.files]})

    @classmethod
    def from_bytes(cls, data: bytes, where: str) -> Manifest:
        """Read the stored form."""
        rows = load(data, where).get("files", [])
        return cls(files=tuple(build(FileEntry, row, where) for row in rows))


@dataclass(frozen=True, kw_only=True)
class Location:
    """One physical copy of an artifact: logical path -> object key."""

    content_digest: str
    attempt: str
    keys: dict[str, str]


@dataclass(frozen=True, kw_only=True)
class InputRecord:
    """One input of an action. `index` is the place in an ordered role, else None.

    `waivers` are the waivers (`<definition>/<sequence>`) that the input was found by.
    """

    role: str
    index: int | None
    title: str
    content_digest: str
    action_key: str
    recipe_digest: str
    waivers: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class SourceRecord:
    """One source of an action, by the digest of its manifest."""

    role: str
    manifest_digest: str
    num_files: int
    size_bytes: int
    provenance: dict[str, str]


@dataclass(frozen=True, kw_only=True)
class Record:
    """What an action made, from what, by which code, and who ran it. Written last."""

    action_key: str
    recipe_digest: str
    definition: str
    content_digest: str
    attempt: str
    name: str
    title: str
    body: str
    config: Any
    code_digest: str
    inputs: tuple[InputRecord, ...]
    sources: tuple[SourceRecord, ...]
    num_files: int
    size_bytes: int
    provenance: dict[str, Any]
    format: int = FORMAT

    @property
    def leans_on_waivers(self) -> bool:
        """Whether an input, or a part that was taken over, counts by a waiver only."""
        return any(i.waivers for i in self.inputs) or bool(self.provenance.get("waivers"))

    def row(self) -> dict[str, Any]:
        """The record as JSON holds it. `asdict` would copy the config leaf by leaf."""
        inputs = [vars(item) for item in self.inputs]
        sources = [vars(source) for source in self.sources]
        return {**vars(self), "inputs": inputs, "sources": sources}

    def to_bytes(self) -> bytes:
        """The stored form."""
        return dump(self.row())

    @classmethod
    def from_bytes(cls, data: bytes, where: str) -> Record:
        """Read the stored form."""
        return cls.from_json(load(data, where), where)

    @classmethod
    def from_json(cls, row: dict[str, Any], where: str) -> Record:
        """Read a parsed document, for example the one inside a seal."""
        check_format(row, where)
        inputs = tuple(_input(r, where) for r in row.get("inputs", ()))
        sources = tuple(build(SourceRecord, r, where) for r in row.get("sources", ()))
        return build(cls, {**row, "inputs": inputs, "sources": sources}, where)


@dataclass(frozen=True, kw_only=True)
class Part:
    """A finished piece inside a step: the files of a shard, or a saved state."""

    kind: str
    label: str
    attempt: str
    files: tuple[FileEntry, ...]
    keys: dict[str, str]
    result: Any

    def to_bytes(self) -> bytes:
        """The stored form."""
        return dump({**vars(self), "files": [vars(entry) for entry in self.files]})

    @classmethod
    def from_bytes(cls, data: bytes, where: str) -> Part:
        """Read the stored form."""
        row = load(data, where)
        files = tuple(build(FileEntry, r, where) for r in row.get("files", ()))
        return build(cls, {**row, "files": files}, where)


@dataclass(frozen=True, kw_only=True)
class End:
    """How an attempt ended.

    `sealed` (with the record), `failed`, `cancelled`, `lost`, or `adopted`: someone else's record
    was there before it began.
    """

    state: str
    attempt: str
    record: dict[str, Any] | None = None
    failure: str | None = None
    message: str | None = None
    log: tuple[str, ...] = ()
    by: dict[str, Any] = field(default_factory=dict)

    def to_bytes(self) -> bytes:
        """The stored form."""
        return dump(vars(self))

    @classmethod
    def from_bytes(cls, data: bytes, where: str) -> End:
        """Read the stored form."""
        row = load(data, where)
        return build(cls, {**row, "log": tuple(row.get("log", ()))}, where)


@dataclass(frozen=True, kw_only=True)
class Owner:
    """The process that holds a claim. Host and start time tell one pid from its next user.

    `run` and `title` say what it works on, and so where its diary lies.
    """

    attempt: str
    host: str
    host_id: str
    pid: int
    started: float
    run: str
    title: str = ""


@dataclass(frozen=True, kw_only=True)
class Promotion:
    """From here on `attempt` is the result of its action. `reason` is `lost`, or a person's."""

    action_key: str
    attempt: str
    content_digest: str
    previous: str
    reason: str
    by: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Waiver:
    """`definition` counts as good as `predecessor`, unless a later entry revokes it.

    Directed: it says nothing about the other way round. `title` is for people.
    """

    definition: str
    predecessor: str
    title: str
    reason: str
    is_revoked: bool
    by: dict[str, Any]


def _input(row: dict[str, Any], where: str) -> InputRecord:
    return build(InputRecord, {**row, "waivers": tuple(row.get("waivers", ()))}, where)


def dump(value: Any) -> bytes:
    """Deterministic JSON for the store."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, allow_nan=False)
    return text.encode(errors="backslashreplace") + b"\n"  # a lone surrogate stays a JSON escape


def load(data: bytes, where: str) -> dict[str, Any]:
    """Parse a stored document.

    Raises:
        CorruptError: the object does not hold a JSON document.
        FormatError: a newer version wrote it.

    """
    try:
        value = json.loads(data)
    except ValueError as error:
        msg = f"{where}: not a JSON document ({error}); the object was changed or cut short"
        raise CorruptError(msg) from error
    if not isinstance(value, dict):
        msg = f"{where}: holds {type(value).__name__}, expected an object"
        raise CorruptError(msg)
    check_format(value, where)
    return value


def check_format(row: dict[str, Any], where: str) -> None:
    """Refuse a document of a newer format. One that names no format never had another.

    Raises:
        FormatError: it could be misread; a newer version of Seaglass reads it.

    """
    found = row.get("format", FORMAT)
    if not isinstance(found, int):
        msg = f"{where}: format {found!r} is no whole number; the object was changed"
        raise CorruptError(msg)
    if found > FORMAT:
        msg = f"{where}: format {found} is newer than {FORMAT}; upgrade seaglass to read it"
        raise FormatError(msg)


def build(kind: type[T], row: dict[str, Any], where: str) -> T:
    """Make a dataclass of a parsed row, or say what is missing."""
    known = {f.name for f in fields(kind)}  # type: ignore[arg-type]  # every caller passes a dataclass
    try:
        return kind(**{k: v for k, v in row.items() if k in known})
    except TypeError as error:
        msg = f"{where}: incomplete {kind.__name__}: {error}"
        raise CorruptError(msg) from error
