"""The ports of `pipeline.body` over plain local folders: no store, no Ray, no cache.

This is how a test, a notebook or a debugger runs one step body: `run_body(body, config, inputs,
into)`. Shards run one after another in this process.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from pipeline.encoding import digest
from pipeline.errors import RecipeError, StepError, UsageError
from pipeline.paths import checked_path, missing_file
from pipeline.running.logs import shortened

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from pipeline.body import Artifact, OpenedSource
    from pipeline.sources import SourceFile, SourceManifest


@dataclass(frozen=True)
class FolderArtifact:
    """A folder read as an artifact."""

    root: Path

    @property
    def content_digest(self) -> str:
        """Digest of (path, size, sha256) of all files."""
        rows = [
            (path, self.size_bytes(path), hashlib.sha256(self.read_bytes(path)).hexdigest())
            for path in self.paths()
        ]
        return digest(rows)

    def paths(self, pattern: str = "*") -> list[str]:
        """Sorted relative paths that match."""
        found = (p.relative_to(self.root).as_posix() for p in self.root.rglob("*") if p.is_file())
        return sorted(path for path in found if fnmatchcase(path, pattern))

    def size_bytes(self, path: str) -> int:
        """Size of one file."""
        return self.local(path).stat().st_size

    def local(self, path: str) -> Path:
        """The file itself."""
        file = self.root / checked_path(path)
        if not file.is_file():
            raise UsageError(missing_file(str(self.root), path, self.paths()))
        return file

    def read_bytes(self, path: str) -> bytes:
        """The whole file."""
        return self.local(path).read_bytes()

    def read_json(self, path: str) -> Any:
        """The file parsed as JSON."""
        return json.loads(self.read_bytes(path))


@dataclass(frozen=True)
class FolderState:
    """A saved state in a folder."""

    key: str
    info: Any
    root: Path

    def paths(self) -> list[str]:
        """Sorted paths of its files."""
        return FolderArtifact(self.root).paths()

    def local(self, path: str) -> Path:
        """One of its files."""
        return FolderArtifact(self.root).local(path)


@dataclass(frozen=True)
class LocalSource:
    """A resolved source whose files all lie on this machine."""

    manifest: SourceManifest

    def open(self, file: SourceFile) -> BinaryIO:
        """The bytes of one file."""
        return Path(file.location).open("rb")


@dataclass(frozen=True)
class FolderInputs:
    """Inputs by role: folders or artifacts, lists of them, or opened sources."""

    roles: Mapping[str, Any]

    def __getitem__(self, role: str) -> Artifact:
        value = self._role(role)
        return FolderArtifact(value) if isinstance(value, Path) else value

    def many(self, role: str) -> list[Artifact]:
        """The artifacts in an ordered role."""
        return [FolderArtifact(v) if isinstance(v, Path) else v for v in self._role(role)]

    def source(self, role: str) -> OpenedSource:
        """The source in a role."""
        value: OpenedSource = self._role(role)
        return value

    def _role(self, role: str) -> Any:
        if role not in self.roles:
            msg = f"no input in role {role!r}; the step has {sorted(self.roles)}"
            raise RecipeError(msg)
        return self.roles[role]


@dataclass
class FolderOutput:
    """Writes into a folder; states go beside it, into `<root>.states`."""

    root: Path
    config: object = None
    inputs: Any = None
    cpus: int = 1
    events: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    scratch: Path = field(default_factory=lambda: Path(tempfile.mkdtemp(prefix="seaglass-")))
    saved: set[str] = field(default_factory=set)

    @contextmanager
    def open(self, path: str) -> Iterator[BinaryIO]:
        """Open a new file for writing."""
        file = self.root / checked_path(path)
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("xb") as sink:
            yield sink

    def write_bytes(self, path: str, data: bytes) -> None:
        """Write one file."""
        with self.open(path) as sink:
            sink.write(data)

    def write_json(self, path: str, value: Any) -> None:
        """Write one JSON file."""
        self.write_bytes(path, json_bytes(value))

    def add(self, path: str, local: Path) -> None:
        """Copy a local file into the artifact."""
        with local.open("rb") as source, self.open(path) as sink:
            shutil.copyfileobj(source, sink)

    def progress(self, *, done: float, total: float, unit: str, **metrics: float) -> None:
        """Remember the progress as an event."""
        self.event("progress", done=done, total=total, unit=unit, **metrics)

    def event(self, kind: str, **body: Any) -> None:
        """Remember an event."""
        self.events.append((kind, body))

    def map_shards(
        self, function: Callable[..., Any], shards: Sequence[Any], *, cpus: float = 1
    ) -> list[Any]:
        """Run the shards one after another."""
        del cpus
        keys = [digest(shard) for shard in shards]
        if len(set(keys)) != len(keys):
            msg = f"map_shards({function.__qualname__}): two shards are equal"
            raise RecipeError(msg)
        results = [function(self.config, shard, self.inputs, self) for shard in shards]
        return [json.loads(json.dumps(result)) for result in results]

    def save_state(self, key: str, files: Mapping[str, Path], info: Any) -> None:
        """Save a state beside the artifact; one that an earlier call saved stays as it is."""
        if key in self.saved:
            raise twice_saved(key)
        self.saved.add(key)
        folder = self._states / checked_path(key)
        if (folder / "info.json").exists():
            return
        for path, local in files.items():
            target = folder / "files" / checked_path(path)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(local, target)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "info.json").write_bytes(json_bytes(info))

    def states(self) -> list[FolderState]:
        """The saved states, sorted by key."""
        found = sorted(self._states.glob("*/info.json"))
        return [
            FolderState(p.parent.name, json.loads(p.read_bytes()), p.parent / "files")
            for p in found
        ]

    @property
    def _states(self) -> Path:
        return self.root.with_name(self.root.name + ".states")


def twice_saved(key: str) -> StepError:
    """What is wrong with a body that saves two states under one key."""
    msg = f"state {key!r} is saved twice by one step; give every state a key of its own"
    return StepError(msg)


def json_bytes(value: Any) -> bytes:
    """Deterministic JSON: sorted keys, UTF-8, no NaN, newline at the end."""
    try:
        text = json.dumps(value, sort_keys=True, ensure_ascii=False, allow_nan=False, indent=1)
    except (TypeError, ValueError) as error:
        msg = f"a step writes {shortened(repr(value))} as JSON, which cannot hold it: {error}"
        raise StepError(msg) from error
    return text.encode() + b"\n"


def run_body(
    body: Callable[..., None],
    config: object,
    inputs: Mapping[str, Any],
    into: Path,
    *,
    cpus: int | None = None,
) -> FolderArtifact:
    """Run a step body over folders and return what it wrote.

    `inputs` maps roles to folders, artifacts, lists of them, or opened sources. A second call
    with the same `into` sees the states that the first one saved.
    """
    if into.exists():
        shutil.rmtree(into)
    into.mkdir(parents=True)
    opened = FolderInputs(inputs)
    output = FolderOutput(into, config, opened, cpus or os.cpu_count() or 1)
    try:
        body(config, opened, output)
    finally:
        shutil.rmtree(output.scratch, ignore_errors=True)
    return FolderArtifact(into)
