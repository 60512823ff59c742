"""The manifests of a DAG's sources: resolved where the sources lie, or as an earlier run saw them.

Identity needs the digest of a manifest, a plan its file list; the places of the bytes are needed
only by a step that runs. `LiveSources` looks at every source at once; `pipeline.planning.frozen`
only at those that must be read.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Protocol, cast

from pipeline.errors import SourceError
from pipeline.planning.identity import source_digest
from pipeline.shown import shown
from pipeline.store.layout import FORMAT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pipeline.digests import RememberedDigests
    from pipeline.planning.dag import Dag
    from pipeline.sources import Source, SourceManifest


class SourceManifests(Protocol):
    """The manifest of every source of one DAG."""

    @property
    def runs(self) -> tuple[str, ...]:
        """The runs whose manifests these are; none if the sources were looked at."""
        ...

    def digest(self, source: Source) -> str:
        """What enters identity."""
        ...

    def manifest(self, source: Source) -> SourceManifest:
        """Names, sizes and checksums. Where the bytes lie may not be known."""
        ...

    def to_read(self, source: Source, where: str) -> SourceManifest:
        """The same with the places of the bytes; `where` (`step.role`) is for messages.

        Raises:
            SourceError: the source is not as this manifest says.

        """
        ...


class LiveSources:
    """Every source as it is now, each looked at once."""

    runs: tuple[str, ...] = ()

    def __init__(self, dag: Dag, digests: RememberedDigests) -> None:
        self._found: dict[int, SourceManifest] = {}
        self._digests: dict[int, str] = {}
        equal: dict[tuple[str, Source], SourceManifest] = {}
        for where, source in sources_of(dag):
            meaning = (repr(source), source)  # by repr as well: 1 == True, but not in a digest
            if meaning not in equal:
                equal[meaning] = resolve_source(source, digests, where)
            self._found[id(source)] = equal[meaning]
            self._digests[id(source)] = source_digest(equal[meaning])
        digests.save()

    def digest(self, source: Source) -> str:
        """What enters identity."""
        return self._digests[id(source)]

    def manifest(self, source: Source) -> SourceManifest:
        """The manifest, with the places of the bytes."""
        return self._found[id(source)]

    def to_read(self, source: Source, where: str) -> SourceManifest:
        """The same: everything was looked at."""
        del where
        return self.manifest(source)


def sources_of(dag: Dag) -> Iterator[tuple[str, Source]]:
    """Every source of a DAG under the place (`step.role`) that reads it."""
    for node in dag.nodes.values():
        for role, source in node.step.sources():
            yield f"{node.title}.{role}", source


def resolve_source(source: Source, digests: RememberedDigests, where: str) -> SourceManifest:
    """Look at a source.

    Raises:
        SourceError: it is missing, cannot be pinned, or lists its files in no order.

    """
    module_name, _, function_name = source.resolver.partition(":")
    resolver = getattr(importlib.import_module(module_name), function_name)
    try:
        manifest = cast("Callable[..., SourceManifest]", resolver)(source, digests)
    except OSError as error:
        msg = f"source {where} cannot be looked at: {error}"
        raise SourceError(msg) from error
    names = [file.name for file in manifest.files]
    if names != sorted(set(names)):
        msg = f"source {where}: its files must be sorted by name and all different"
        raise SourceError(msg)
    return manifest


def source_manifest_document(manifest: SourceManifest) -> dict[str, Any]:
    """A source's file list as the store keeps it: names and checksums, no place."""
    files = [[f.name, f.size_bytes, f.checksum] for f in manifest.files]
    return {"format": FORMAT, "source": files, "options": shown(dict(manifest.options))}
