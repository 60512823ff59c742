"""What the body of a step sees: its opened inputs and an output writer.

A body is `def name(config, inputs: Inputs, output: Output) -> None`. It holds no store, no Ray and
no clock, so it runs in a test over plain folders (`pipeline.folder.run_body`). What it writes is
the artifact: no host, path, time or duration may enter these bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, BinaryIO, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from pipeline.sources import SourceFile, SourceManifest


class Artifact(Protocol):
    """A published output, read only. Paths are logical: relative, `/` between parts."""

    @property
    def content_digest(self) -> str:
        """Digest of all files, hex."""
        ...

    def paths(self, pattern: str = "*") -> list[str]:
        """Sorted paths that match a shell pattern (`*` also crosses `/`)."""
        ...

    def size_bytes(self, path: str) -> int:
        """Size of one file."""
        ...

    def local(self, path: str) -> Path:
        """A verified local copy, fit for memory-mapping. Never write to it."""
        ...

    def read_bytes(self, path: str) -> bytes:
        """The whole file, verified."""
        ...

    def read_json(self, path: str) -> Any:
        """The file parsed as JSON."""
        ...


class OpenedSource(Protocol):
    """A source whose manifest is fixed; its bytes are read here for the first time."""

    @property
    def manifest(self) -> SourceManifest:
        """What the plan resolved; the body must deliver exactly this or fail."""
        ...

    def open(self, file: SourceFile) -> BinaryIO:
        """The bytes of one file, for reading."""
        ...


class Inputs(Protocol):
    """The inputs of a step by role."""

    def __getitem__(self, role: str) -> Artifact:
        """The artifact in a single role."""
        ...

    def many(self, role: str) -> list[Artifact]:
        """The artifacts in an ordered role."""
        ...

    def source(self, role: str) -> OpenedSource:
        """The source in a role."""
        ...


class State(Protocol):
    """One saved state of a running step, for example a training checkpoint."""

    @property
    def key(self) -> str:
        """The key it was saved under."""
        ...

    @property
    def info(self) -> Any:
        """The JSON value that was saved with it."""
        ...

    def local(self, path: str) -> Path:
        """A verified local copy of one of its files."""
        ...

    def paths(self) -> list[str]:
        """Sorted paths of its files."""
        ...


class Output(Protocol):
    """Writes the files of one attempt. Nothing is visible to others before the step is done."""

    @property
    def cpus(self) -> int:
        """How many threads the body may use (at least 1)."""
        ...

    @property
    def scratch(self) -> Path:
        """An empty local folder that is deleted after the step."""
        ...

    def open(self, path: str) -> AbstractContextManager[BinaryIO]:
        """Open a file of the artifact for writing, once, front to back."""
        ...

    def write_bytes(self, path: str, data: bytes) -> None:
        """Write one small file."""
        ...

    def write_json(self, path: str, value: Any) -> None:
        """Write one small JSON file, keys sorted."""
        ...

    def add(self, path: str, local: Path) -> None:
        """Copy a local file into the artifact."""
        ...

    def progress(self, *, done: float, total: float, unit: str, **metrics: float) -> None:
        """Tell people how far the step is. Never part of the artifact; cheap to call often."""
        ...

    def event(self, kind: str, **body: Any) -> None:
        """Add an event to the run's diary (`metrics`, `spike`, `note` ...)."""
        ...

    def map_shards(
        self,
        function: Callable[..., Any],
        shards: Sequence[Any],
        *,
        cpus: float = 1,
    ) -> list[Any]:
        """Run `function(config, shard, inputs, output)` for every shard, in parallel on Ray.

        `function` stands at the top of an importable module; `shards` are encodable values
        (strings, numbers, tuples, frozen dataclasses), all different; the function returns
        something that JSON can hold. Each finished shard is kept: a second attempt of the same
        step runs only the missing ones. Results come back in the order of `shards`. Two shards
        must not write the same path.
        """
        ...

    def save_state(self, key: str, files: Mapping[str, Path], info: Any) -> None:
        """Save a resumable state, visible to the next attempt of this step at once.

        Each state of a step has a key of its own; a second one under a key is an error.
        """
        ...

    def states(self) -> list[State]:
        """States that earlier attempts of this very step saved, sorted by key."""
        ...
