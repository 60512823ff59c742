"""The neighbourhood of an artifact in the lineage: what it was made from, what was made of it.

Bounded in width and depth, so that the cost follows what is drawn and never the size of the store.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipeline.asking.lineage import Bounds, Edge, Lineage, place, walk_down, walk_up

if TYPE_CHECKING:
    from pipeline.store.objects import Record, SourceRecord
    from pipeline.store.store import Store

ABOVE = Bounds(wide=10, deep=6)
BELOW = Bounds(wide=10, deep=3)
NODES_EACH_WAY = 40


def neighbourhood(store: Store, record: Record) -> dict[str, Any]:
    """Nodes and edges around a record, sources among them; edges point from input to product."""
    nodes: dict[str, dict[str, Any]] = {}
    edges: dict[tuple[str, str, str], None] = {}
    is_cut = False
    for walk in (walk_up(store, record, ABOVE), walk_down(store, record, BELOW)):
        related = _related(walk)
        shown = dict(list(related.items())[: NODES_EACH_WAY + 1])
        is_cut |= len(shown) < len(related) or any(walk.unread.values())
        nodes |= {key: _node(one) for key, one in shown.items()}
        _add_missing(walk, nodes)
        for edge in walk.to_edges():
            if {edge["from"], edge["to"]} <= nodes.keys() and not edge["equal_bytes"]:
                edges[edge["from"], edge["to"], edge["role"]] = None
        for one in shown.values():
            for source in one.sources:
                nodes.setdefault(_source_key(source), _source_node(source))
                edges[_source_key(source), one.action_key, source.role] = None
    return {
        "start": record.action_key,
        "nodes": [{"key": key, **node} for key, node in nodes.items()],
        "edges": [{"from": above, "to": below, "role": role} for above, below, role in edges],
        "is_cut": is_cut,
    }


def _related(walk: Lineage) -> dict[str, Record]:
    """What hangs together with the start by ancestry, nearest first.

    Readers of equal bytes that another action made are left to `seaglass lineage`: drawn as
    ancestry they would even make circles.
    """
    todo = [walk.start]
    for key in todo:  # grows while it is walked
        fresh = [edge.action_key for edge in walk.edges.get(key, ()) if not edge.is_equal]
        todo += [other for other in dict.fromkeys(fresh) if other not in todo]
    return {key: walk.records[key] for key in todo if key in walk.records}


def _node(record: Record) -> dict[str, Any]:
    return {
        "kind": "artifact",
        "title": record.title,
        "digest": record.content_digest,
        "size_bytes": record.size_bytes,
    }


def _source_key(source: SourceRecord) -> str:
    return f"source-{source.manifest_digest}"


def _source_node(source: SourceRecord) -> dict[str, Any]:
    return {
        "kind": "source",
        "title": f"{source.num_files:,} source file{'s' * (source.num_files != 1)}",
        "digest": source.manifest_digest,
        "size_bytes": source.size_bytes,
    }


def _add_missing(walk: Lineage, nodes: dict[str, dict[str, Any]]) -> None:
    """Inputs that have no record here are shown, without a page behind them."""
    for reader, items in walk.missing.items():
        for item in items:
            if reader in nodes:
                found = {"kind": "missing", "title": item.title, "digest": item.content_digest}
                nodes.setdefault(item.action_key, found | {"size_bytes": None})
                walk.edges[reader].append(Edge(place(item.role, item.index), item.action_key))
