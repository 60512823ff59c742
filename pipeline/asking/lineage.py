"""Lineage: artifact -> inputs -> ... to the sources, or down to everything made from it.

Upwards the records name their inputs; downwards the edges below `v1/consumers/` do. Who made some
bytes, and who read them, is one listing each, whatever else the store holds. Walks are loops, wave
by wave, and cost requests in proportion to what they find; `Bounds` keep them to what is shown.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from pipeline.store import layout
from pipeline.store.adapter import in_parallel
from pipeline.store.promotions import Promotions, record_with

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pipeline.store.objects import InputRecord, Record
    from pipeline.store.store import Store


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """How many neighbours of one artifact are read, and how many levels; None means all.

    Once `many` records are read, no further level is: twenty levels of twenty would be no bound.
    """

    wide: int | None = None
    deep: int | None = None
    many: int | None = None

    def width(self, level: int, num_read: int) -> int | None:
        """How many neighbours of each artifact of a level to read."""
        is_deep = self.deep is not None and level >= self.deep
        is_much = self.many is not None and num_read >= self.many
        return 0 if is_deep or is_much else self.wide


class Edge(NamedTuple):
    """A neighbour in the direction of the walk.

    `is_equal` says that the reader names another action that made the same bytes; `waivers` are the
    ids that let the reader take this input.
    """

    role: str
    action_key: str
    is_equal: bool = False
    waivers: tuple[str, ...] = ()


@dataclass(kw_only=True)
class Lineage:
    """What a walk found: records by action key, and the edges of each in its direction.

    `unread` counts the neighbours of an action that its bounds left out; `missing` are inputs that
    have no record here, by the action that read them.
    """

    start: str
    direction: str
    records: dict[str, Record] = field(default_factory=dict)
    edges: dict[str, list[Edge]] = field(default_factory=dict)
    unread: dict[str, int] = field(default_factory=dict)
    missing: dict[str, list[InputRecord]] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Nodes and edges for programs."""
        nodes = {key: record.row() for key, record in self.records.items()}
        missing = {key: [asdict(item) for item in items] for key, items in self.missing.items()}
        edges = self.to_edges()
        return {"start": self.start, "nodes": nodes, "edges": edges, "missing": missing}

    def to_edges(self) -> list[dict[str, Any]]:
        """Edges from input to product, whatever the direction of the walk."""
        edges = []
        for key, others in self.edges.items():
            for edge in others:
                above, below = key, edge.action_key
                if self.direction == "up":
                    above, below = below, above
                row = {"from": above, "to": below, "role": edge.role}
                notes = {"equal_bytes": edge.is_equal, "waivers": list(edge.waivers)}
                edges.append(row | notes)
        return edges


EVERYTHING = Bounds()


def walk_up(store: Store, record: Record, bounds: Bounds = EVERYTHING) -> Lineage:
    """Everything that a record was made from."""
    found = Lineage(start=record.action_key, direction="up", records={record.action_key: record})
    wave, level = [record], 0
    while wave:
        width = bounds.width(level, len(found.records))
        asked = {
            (item.action_key, item.content_digest)
            for reader in wave
            for item in reader.inputs[:width]
            if item.action_key not in found.records
        }
        fresh = in_parallel(lambda one: record_with(store, *one), sorted(asked))
        new = {one.action_key: one for one in fresh.values() if one is not None}
        found.records.update(new)
        for reader in wave:
            _add_inputs(found, reader, width)
        wave, level = list(new.values()), level + 1
    return found


def walk_down(store: Store, record: Record, bounds: Bounds = EVERYTHING) -> Lineage:
    """Everything that was made from the very bytes of a record, whichever action made them.

    After a promotion that is what read the promoted bytes; what read the earlier ones stands below
    the earlier result, which is found as `name@label`.
    """
    found = Lineage(start=record.action_key, direction="down", records={record.action_key: record})
    promotions = Promotions(store)
    wave, level = [record], 0
    while wave:
        width = bounds.width(level, len(found.records))
        # A set's order would differ from process to process, and so would what is drawn.
        readers = in_parallel(partial(consumers, store), [one.content_digest for one in wave])
        asked = dict.fromkeys(key for keys in readers.values() for key in keys[:width])
        fresh = store.records(key for key in asked if key not in found.records)
        new = {key: promotions.current(one) for key, one in fresh.items() if one is not None}
        found.records.update(new)
        inputs = _inputs_by_content(found.records[key] for key in asked if key in found.records)
        for one in wave:
            key, keys = one.action_key, readers[one.content_digest]
            found.unread[key] = len(keys) - len(keys[:width])
            items = inputs.get(one.content_digest, ())
            found.edges[key] = [_edge_to(reader, item, key) for reader, item in items]
        wave, level = list(new.values()), level + 1
    return found


def producers(store: Store, content_digest: str) -> list[str]:
    """Actions that made these bytes: one listing. Those that have no record yet are among them."""
    return _action_keys(store, layout.producers(content_digest))


def consumers(store: Store, content_digest: str) -> list[str]:
    """Actions that read these bytes: one listing. Those that have no record yet are among them."""
    return _action_keys(store, layout.consumers(content_digest))


def source_files(store: Store, manifest_digest: str) -> list[tuple[str, int, str]]:
    """(name, size in bytes, checksum) of every file of a source."""
    document = store.read(layout.manifest(manifest_digest)) or {}
    return [(name, size, checksum) for name, size, checksum in document.get("source", [])]


def place(role: str, index: int | None) -> str:
    """A role as people read it.

    >>> [place("tokens", None), place("tokens", 2)]
    ['tokens', 'tokens[2]']
    """
    return role if index is None else f"{role}[{index}]"


def _add_inputs(found: Lineage, reader: Record, width: int | None) -> None:
    inputs = reader.inputs[:width]
    found.unread[reader.action_key] = len(reader.inputs) - len(inputs)
    found.edges[reader.action_key] = [
        Edge(place(item.role, item.index), item.action_key, waivers=item.waivers)
        for item in inputs
        if item.action_key in found.records
    ]
    missing = [item for item in inputs if item.action_key not in found.records]
    if missing:
        found.missing[reader.action_key] = missing


def _inputs_by_content(
    readers: Iterable[Record],
) -> dict[str, list[tuple[str, InputRecord]]]:
    """Who read which bytes: each input is looked at once, however many there are."""
    found: dict[str, list[tuple[str, InputRecord]]] = {}
    for reader in readers:
        for item in reader.inputs:
            found.setdefault(item.content_digest, []).append((reader.action_key, item))
    return found


def _edge_to(reader: str, item: InputRecord, key: str) -> Edge:
    return Edge(place(item.role, item.index), reader, item.action_key != key, item.waivers)


def _action_keys(store: Store, prefix: str) -> list[str]:
    keys = (key.rsplit("/", 1)[1] for key in store.list_all(prefix))
    return [key for key in keys if layout.is_digest(key)]
