"""The ports of `pipeline.body` over the store: what a body reads and writes in a real run."""

from __future__ import annotations

import json
import math
import os
import shutil
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol, cast

import fsspec

from pipeline.encoding import digest
from pipeline.errors import CorruptError, RecipeError, SourceError, StepError, StoreError
from pipeline.folder import json_bytes, twice_saved
from pipeline.paths import checked_path
from pipeline.running.fence import fenced
from pipeline.store.files import AttemptFiles, StoredFiles
from pipeline.store.objects import Location, Manifest, Part
from pipeline.store.parts import bury_damaged, create_part, find_part, live_parts
from pipeline.store.store import CORRUPT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from pipeline.body import Artifact, OpenedSource
    from pipeline.digests import RememberedDigests
    from pipeline.running.scratch import Scratch
    from pipeline.sources import SourceFile, SourceManifest
    from pipeline.store.store import Store


@dataclass(frozen=True)
class StoredArtifact:
    """An artifact of the store, opened on first use."""

    store: Store
    content_digest: str
    title: str
    digests: RememberedDigests

    @cached_property
    def _files(self) -> StoredFiles:
        where = f"artifact {self.title} ({self.content_digest[:12]})"
        copy = self.store.copy(self.content_digest)
        if copy is None:
            msg = (
                f"{where} has no copy left in {self.store.url}; "
                f"what made it: seaglass show {self.content_digest[:12]}"
            )
            raise CorruptError(msg)
        try:
            manifest = self.store.manifest(self.content_digest)
        except CorruptError as error:  # bytes without a readable list are no copy
            self._bury(copy.location.attempt, error)
            raise
        return StoredFiles(copy.store, copy.location, manifest, where=where)

    def paths(self, pattern: str = "*") -> list[str]:
        """Sorted paths that match."""
        return self._files.paths(pattern)

    def size_bytes(self, path: str) -> int:
        """Size of one file."""
        return self._files.size_bytes(path)

    def local(self, path: str) -> Path:
        """A verified local copy. A damaged one is buried, so that the next plan rebuilds it."""
        try:
            return self._files.local(path, self.digests)
        except CorruptError as error:
            self._bury(self._files.attempt, error)
            raise

    def _bury(self, attempt: str, error: CorruptError) -> None:
        with suppress(StoreError):  # where no one may write, the damage is what must be told
            self.store.prepare()  # it may be new, where the copy lies upstream
            self.store.bury(self.content_digest, attempt, reason=CORRUPT, what=str(error))

    def read_bytes(self, path: str) -> bytes:
        """The whole file, verified."""
        return self.local(path).read_bytes()

    def read_json(self, path: str) -> Any:
        """The file parsed as JSON."""
        return json.loads(self.read_bytes(path))


@dataclass(frozen=True)
class ResolvedSource:
    """A source whose manifest the plan has fixed; its files are read where they lie."""

    manifest: SourceManifest

    def open(self, file: SourceFile) -> BinaryIO:
        """The bytes of one file."""
        try:
            if "://" in file.location:
                return cast("BinaryIO", fsspec.open(file.location, "rb").open())
            return Path(file.location).open("rb")
        except FileNotFoundError as error:
            msg = f"source file {file.name!r} is gone since it was planned; plan again"
            raise SourceError(msg) from error


@dataclass(frozen=True)
class StoredInputs:
    """The inputs of a step by role."""

    artifacts: Mapping[str, StoredArtifact | tuple[StoredArtifact, ...]]
    sources: Mapping[str, SourceManifest]

    def __getitem__(self, role: str) -> Artifact:
        found = self._role(role)
        if isinstance(found, tuple):
            msg = f"role {role!r} holds {len(found)} artifacts; read it with inputs.many({role!r})"
            raise RecipeError(msg)
        return found

    def many(self, role: str) -> list[Artifact]:
        """The artifacts in an ordered role."""
        found = self._role(role)
        return list(found) if isinstance(found, tuple) else [found]

    def source(self, role: str) -> OpenedSource:
        """The source in a role."""
        if role not in self.sources:
            msg = f"no source in role {role!r}; the step has {sorted(self.sources)}"
            raise RecipeError(msg)
        return ResolvedSource(self.sources[role])

    def _role(self, role: str) -> StoredArtifact | tuple[StoredArtifact, ...]:
        if role not in self.artifacts:
            msg = f"no input in role {role!r}; the step has {sorted(self.artifacts)}"
            raise RecipeError(msg)
        return self.artifacts[role]


@dataclass(frozen=True)
class SavedState:
    """A state that an attempt saved as a part."""

    store: Store
    actions: tuple[str, ...]
    part: Part
    digests: RememberedDigests

    @property
    def key(self) -> str:
        """The key it was saved under."""
        return self.part.label

    @property
    def info(self) -> Any:
        """The JSON value saved with it."""
        return self.part.result

    def paths(self) -> list[str]:
        """Sorted paths of its files."""
        return sorted(self.part.keys)

    def local(self, path: str) -> Path:
        """A verified local copy of one file. A damaged state is buried: the next try has none."""
        try:
            return stored_part(self.store, self.part).local(path, self.digests)
        except CorruptError as error:
            for action_key in self.actions:
                bury_damaged(self.store, action_key, self.part, what=str(error))
            raise


class Shards(Protocol):
    """Runs the shards of a step; given by the executor."""

    def map(self, function: Callable[..., Any], shards: Sequence[Any], cpus: float) -> list[Part]:
        """The part of every shard, in order."""
        ...


@dataclass
class Pulse:
    """What the heartbeat of an attempt tells, and why the attempt should stop, if it should."""

    latest: dict[str, Any] = field(default_factory=dict)
    why_stop: Callable[[], str | None] = lambda: None
    pid: int = field(default_factory=os.getpid)

    def row(self) -> dict[str, Any]:
        """The progress to show with the next beat."""
        return dict(self.latest)

    def check(self) -> None:
        """Raise if the attempt has lost its claim, or never had it: a fork shares none."""
        if os.getpid() != self.pid:
            msg = (
                f"process {os.getpid()}, which the body forked, writes to the step's output; "
                "write in the body's own process, or fan out with output.map_shards"
            )
            raise StepError(msg)
        why = self.why_stop()
        if why is not None:
            raise fenced(why)


@dataclass
class StoredOutput:
    """Writes the files of one attempt, or of one shard of it.

    `predecessors` are actions whose finished parts count as this one's, by a waiver.
    """

    store: Store
    action_key: str
    predecessors: tuple[str, ...]
    attempt: str
    namespace: str
    cpus: int
    scratch_space: Scratch
    digests: RememberedDigests
    files: AttemptFiles
    pulse: Pulse
    diary: Callable[..., None]
    shards: Shards | None = None
    saved: set[str] = field(default_factory=set)

    @property
    def scratch(self) -> Path:
        """An empty local folder."""
        return self.scratch_space.folder

    @contextmanager
    def open(self, path: str) -> Iterator[BinaryIO]:
        """Open a new file of the artifact."""
        self.pulse.check()
        with self.files.open(path) as sink:
            yield sink

    def write_bytes(self, path: str, data: bytes) -> None:
        """Write one small file."""
        with self.open(path) as sink:
            sink.write(data)

    def write_json(self, path: str, value: Any) -> None:
        """Write one small JSON file."""
        self.write_bytes(path, json_bytes(value))

    def add(self, path: str, local: Path) -> None:
        """Copy a local file into the artifact."""
        with local.open("rb") as source, self.open(path) as sink:
            shutil.copyfileobj(source, sink, 1 << 20)

    def progress(self, *, done: float, total: float, unit: str, **metrics: float) -> None:
        """Keep the newest progress; the next heartbeat carries it."""
        self.pulse.check()
        plain = {name: _plain(value) for name, value in metrics.items()}
        self.pulse.latest = {
            "done": _plain(done),
            "total": _plain(total),
            "unit": unit,
            "metrics": plain,
        }

    def event(self, kind: str, **body: Any) -> None:
        """Add an event to the run's diary."""
        self.diary(kind, **body)

    def map_shards(
        self, function: Callable[..., Any], shards: Sequence[Any], *, cpus: float = 1
    ) -> list[Any]:
        """Run a function for every shard; finished ones of earlier attempts are taken over."""
        self.pulse.check()
        if self.shards is None:
            msg = f"map_shards({function.__qualname__}) inside a shard: shards do not nest"
            raise RecipeError(msg)
        parts = self.shards.map(function, shards, cpus)
        for part in parts:
            self.files.adopt(part.files, part.keys)
        return [part.result for part in parts]

    def save_state(self, key: str, files: Mapping[str, Path], info: Any) -> None:
        """Save a resumable state as a part: its files first, then its record."""
        self.pulse.check()
        if checked_path(key) in self.saved:
            raise twice_saved(key)
        piece = Piece(
            kind="state", label=key, key=part_key(self.namespace, "state", key), result=info
        )
        written = AttemptFiles(self.store, self.attempt, folder=f"states/{time.monotonic_ns()}")
        for path, local in files.items():
            written.add(path, local)
        save_part(self, piece, written)
        self.saved.add(key)

    def states(self) -> list[SavedState]:
        """States of earlier attempts at this very action."""
        found = self.parts("state")
        actions = (self.action_key, *self.predecessors)
        states = [SavedState(self.store, actions, part, self.digests) for part in found.values()]
        return sorted(states, key=lambda state: state.key)

    def parts(self, kind: str) -> dict[str, Part]:
        """Finished pieces of earlier attempts by part key, a predecessor's below the own ones."""
        found: dict[str, Part] = {}
        for action_key in (*reversed(self.predecessors), self.action_key):
            found |= live_parts(self.store, action_key, f"{kind}{self.namespace}")
        return found

    def finished(self, key: str) -> Part | None:
        """One finished piece of an earlier attempt, or None."""
        actions = (self.action_key, *self.predecessors)
        found = (find_part(self.store, one, key) for one in actions)
        return next((part for part in found if part is not None), None)


def _plain(number: float) -> float | str:
    """A number as JSON can hold it: of a library's own type as a float, not finite as a word."""
    if isinstance(number, int):
        return number
    return float(number) if math.isfinite(number) else str(float(number))


def part_key(namespace: str, kind: str, identity: Any) -> str:
    """The key of a finished piece. A forced attempt has a namespace of its own: it reuses none."""
    return digest((namespace, kind, identity), path=kind)


@dataclass(frozen=True, kw_only=True)
class Piece:
    """What is said of a finished piece: its kind, a label for people, its key, a JSON result."""

    kind: str
    label: str
    key: str
    result: Any


def save_part(output: StoredOutput, piece: Piece, files: AttemptFiles) -> Part:
    """Create the record of a piece; if another attempt was first, its piece counts."""
    part = Part(
        kind=f"{piece.kind}{output.namespace}",
        label=piece.label,
        attempt=output.attempt,
        files=files.manifest().files,
        keys=files.keys,
        result=_json_value(piece),
    )
    return create_part(output.store, output.action_key, piece.key, part=part)


def _json_value(piece: Piece) -> Any:
    """The result as it will be read back."""
    try:
        return json.loads(json.dumps(piece.result, allow_nan=False))
    except (TypeError, ValueError) as error:
        msg = f"{piece.kind} {piece.label} returned what JSON cannot hold: {error}"
        raise StepError(msg) from error


def stored_part(store: Store, part: Part) -> StoredFiles:
    """The files of a finished piece, read with verification."""
    manifest = Manifest(files=part.files)
    location = Location(
        content_digest=manifest.content_digest, attempt=part.attempt, keys=part.keys
    )
    return StoredFiles(store, location, manifest, where=f"{part.kind} {part.label}")
