"""Lineage: artifact -> inputs -> ... to the sources, or down to everything made from it.

Upwards the records name their inputs; downwards the edges below `v1/consumers/` do, one listing
per artifact. Both walks are loops and cost requests in proportion to their answer.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from pipeline.store import layout

if TYPE_CHECKING:
    from pipeline.store.objects import Record
    from pipeline.store.store import Store


@dataclass(kw_only=True)
class Lineage:
    """Records by action key, and edges in the direction of the walk as (role, action key)."""

    start: str
    direction: str
    records: dict[str, Record] = field(default_factory=dict)
    edges: dict[str, list[tuple[str, str]]] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Nodes and edges for programs; edges always point from input to product."""
        edges = []
        for key, others in self.edges.items():
            for role, other in others:
                above, below = (other, key) if self.direction == "up" else (key, other)
                edges.append({"from": above, "to": below, "role": role})
        nodes = {key: asdict(record) for key, record in self.records.items()}
        return {"start": self.start, "nodes": nodes, "edges": edges}


def walk_up(store: Store, record: Record) -> Lineage:
    """Everything that a record was made from."""
    found = Lineage(start=record.action_key, direction="up", records={record.action_key: record})
    wave = [record]
    while wave:
        keys = [item.action_key for r in wave for item in r.inputs]
        fresh = store.records(key for key in keys if key not in found.records)
        for item in wave:
            found.edges[item.action_key] = [
                (_role(i.role, i.index), i.action_key)
                for i in item.inputs
                if i.action_key in found.records or fresh.get(i.action_key) is not None
            ]
        wave = [r for r in fresh.values() if r is not None]
        found.records.update({r.action_key: r for r in wave})
    return found


def walk_down(store: Store, record: Record) -> Lineage:
    """Everything that was made from a record."""
    found = Lineage(start=record.action_key, direction="down", records={record.action_key: record})
    wave = [record]
    while wave:
        fresh: dict[str, Record] = {}
        for item in wave:
            consumers = _consumers(store, item)
            found.edges[item.action_key] = [
                (_role(i.role, i.index), consumer.action_key)
                for consumer in consumers
                for i in consumer.inputs
                if i.content_digest == item.content_digest
            ]
            fresh |= {c.action_key: c for c in consumers if c.action_key not in found.records}
        found.records.update(fresh)
        wave = list(fresh.values())
    return found


def source_files(store: Store, manifest_digest: str) -> list[tuple[str, int, str]]:
    """(name, size in bytes, checksum) of every file of a source."""
    document = store.read(layout.manifest(manifest_digest)) or {}
    return [(name, size, checksum) for name, size, checksum in document.get("source", [])]


def mermaid(found: Lineage) -> str:
    """The graph as Mermaid text, sources included."""
    names = {key: f"n{index}" for index, key in enumerate(found.records)}
    lines = ["graph LR"]
    for key, record in found.records.items():
        label = f"{record.title}<br/>{record.content_digest[:12]}".replace('"', "'")
        lines.append(f'  {names[key]}["{label}"]')
        for index, source in enumerate(record.sources):
            lines.append(f'  {names[key]}s{index}[("{source.num_files} files")] --> {names[key]}')
    for edge in found.to_json()["edges"]:
        above, below, role = names[edge["from"]], names[edge["to"]], edge["role"]
        lines.append(f'  {above} -->|"{role}"| {below}')  # quoted, for a role may hold "[0]"
    return "\n".join(lines)


def _consumers(store: Store, record: Record) -> list[Record]:
    keys = store.adapter.list(layout.consumers(record.content_digest))
    found = store.records(key.rsplit("/", 1)[1] for key in keys)
    return [consumer for consumer in found.values() if consumer is not None]


def _role(role: str, index: int | None) -> str:
    return role if index is None else f"{role}[{index}]"
