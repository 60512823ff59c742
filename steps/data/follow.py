"""Follows a document through data steps: where it came from, who kept it, who removed it and why.

Nothing here knows a step: what a step wrote, in the formats of `steps.formats`, tells what became
of a document in it. So every step that writes documents, removals, tokens or a pack plan can be
asked.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipeline.asking.following import Station
from pipeline.errors import StoreError, UsageError
from pipeline.folder import FolderInputs
from steps.data.document_files import ids_as_words, read_range
from steps.data.glance import beginning
from steps.data.ledger import PATH as LEDGER
from steps.data.set_aside import plural
from steps.data.summary import megabytes
from steps.formats import (
    DOCUMENT_FILES,
    MIXTURE_FILE,
    PLAN_FILE,
    QUARANTINE_FILES,
    REMOVAL_FILES,
    TOKEN_STORE_FILE,
)
from steps.mixture import MixedTokens, open_tokens
from steps.pack_plan import PackPlan
from steps.token_store import TokenStore

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pipeline.asking.following import Made
    from pipeline.body import Artifact
    from steps.mixture import AnyTokens

_DOC_ID = re.compile(r"[0-9a-f]{8,32}")
_ID_DIGITS = 32
_CARRIERS = ("documents", "tokens", "sources")  # roles by which it goes from step to step
_SHOWN = 4
_REMOVAL_FACTS = ("kept_doc_id", "jaccard", "score", "item_doc_id", "coverage")
_RENAMED = ("doc_id", "kept_doc_id")  # columns: before masking and after
_ROW_FACTS = ("source_id", "source", "url", "cluster_size")


def follow_document(document: str, made: Sequence[Made]) -> list[Station]:
    """The stations of the document that is meant: a doc_id, its beginning, or a place.

    Raises:
        UsageError: no document, or more than one, is meant.

    """
    path = _Path(_meant(document, made))
    for one in made:
        path.enter(one)
    return path.stations


class _Path:
    """The stations so far, and under which ids the document goes on from each artifact.

    It begins wherever it is held and did not come from above, under any of its ids.
    """

    def __init__(self, doc_ids: set[str]) -> None:
        self.stations: list[Station] = []
        self._start = doc_ids
        self._ids: dict[str, set[str]] = {}
        self._made: dict[str, Made] = {}

    def enter(self, made: Made) -> None:
        """Say what became of it in one step, if it came there."""
        self._made[made.key] = made
        above = [key for role in _CARRIERS for key in made.inputs.get(role, ())]
        came = {doc_id for key in above for doc_id in self._ids.get(key, ())}
        try:
            self._read(made, came)
        except StoreError as error:
            if came or not above:
                self._ids[made.key] = came
                self._add(made, "cannot be told", {"because": str(error)})

    def _read(self, made: Made, came: set[str]) -> None:
        paths = made.artifact.paths()
        if made.artifact.paths(DOCUMENT_FILES):
            self._documents(made, came or self._start, is_first=not came)
        elif came:
            if TOKEN_STORE_FILE in paths:
                self._tokens(made, came, TokenStore(made.artifact), outcome="tokenized")
            elif MIXTURE_FILE in paths:
                mixed = MixedTokens(made.artifact, self._inputs(made, "sources"))
                self._tokens(made, came, mixed, outcome="drawn")
            elif PLAN_FILE in paths:
                self._plan(made, came)

    def _documents(self, made: Made, came: set[str], *, is_first: bool) -> None:
        kept = [row for doc_id in sorted(came) for row in _rows(made.artifact, doc_id)]
        removals = [
            row for doc_id in sorted(came) for row in _rows(made.artifact, doc_id, REMOVAL_FILES)
        ]
        going_on = {row["doc_id"] for row in kept}
        for row in removals:
            if row.get("item_doc_id") and row.get("kept_doc_id"):  # it goes on, masked, as another
                self._add(made, row["rule"], _masked_facts(made.artifact, row))
                going_on.add(row["kept_doc_id"])
            else:
                self._add(made, f"removed: {row['rule']}", _removal_facts(made.artifact, row))
        for row in kept[:_SHOWN]:
            self._add(made, "kept", _kept_facts(row, is_first=is_first))
        if len(kept) > _SHOWN:
            self._add(made, "kept", {"more copies": len(kept) - _SHOWN})
        if not kept and not removals and not is_first:
            self._add(made, *_left_out(made.artifact))
        self._ids[made.key] = going_on

    def _tokens(self, made: Made, came: set[str], tokens: AnyTokens, *, outcome: str) -> None:
        ranks = [rank for doc_id in sorted(came) for rank in _ranks(tokens, doc_id)]
        if ranks:
            self._ids[made.key] = came
            counts = [int(tokens.lengths[rank]) for rank in ranks]
            self._add(made, outcome, {"tokens": _several(counts), "rank": _several(ranks)})

    def _plan(self, made: Made, came: set[str]) -> None:
        inputs = {role: self._inputs(made, role) for role in ("tokens", "sources")}
        inputs["tokens"] = inputs["tokens"][0]
        tokens, plan = open_tokens(FolderInputs(inputs)), PackPlan(made.artifact)
        ranks = [rank for doc_id in sorted(came) for rank in _ranks(tokens, doc_id)]
        places = np.flatnonzero(np.isin(plan.document, ranks))
        facts = {"pieces": len(places), "row": _several(plan.row[places].tolist())}
        facts["of tokens"] = _several(plan.length[places].tolist())
        self._add(made, "packed", facts)

    def _inputs(self, made: Made, role: str) -> Any:
        return [self._made[key].artifact for key in made.inputs.get(role, ())]

    def _add(self, made: Made, outcome: str, facts: dict[str, Any]) -> None:
        self.stations.append(Station(title=made.title, outcome=outcome, facts=facts))


def _meant(document: str, made: Sequence[Made]) -> set[str]:
    """The doc_ids of the one document that is meant: its own, and those it had before masking."""
    found: dict[str, str] = {}
    for one in made:
        for path in _readable_paths(one.artifact, DOCUMENT_FILES):
            table = _matching(one.artifact, path, document)
            found |= dict(zip(*(table[n].to_pylist() for n in ("doc_id", "text")), strict=True))
    before = _ids_before(made)
    ids_of = {doc_id: _with_older(doc_id, before) for doc_id in found}
    first = [doc_id for doc_id in found if not (ids_of[doc_id] - {doc_id}) & found.keys()]
    if len(first) == 1:
        return ids_of[first[0]]
    if found:
        found = {doc_id: found[doc_id] for doc_id in first or found}
        shown = "; ".join(f"{doc_id} ({beginning(found[doc_id])})" for doc_id in sorted(found)[:4])
        msg = (
            f"{document} means {plural(len(found), 'document')}; give the whole id of one: {shown}"
        )
        raise UsageError(msg)
    where = plural(len(made), "artifact")
    msg = f"no document {document!r} in {where}; {_quarantined(document, made)}"
    raise UsageError(msg)


def _ids_before(made: Sequence[Made]) -> dict[str, set[str]]:
    """Of each document that was masked, by its new doc_id, those that it had."""
    before: dict[Any, set[str]] = {}
    for one in made:
        for path in _readable_paths(one.artifact, REMOVAL_FILES):
            local = one.artifact.local(path)
            if "item_doc_id" not in pq.read_schema(local).names:
                continue
            table = pq.read_table(local, columns=list(_RENAMED))
            for old, new in zip(*(table[name].to_pylist() for name in _RENAMED), strict=True):
                before.setdefault(new, set()).add(old)
    before.pop(None, None)  # of those that were removed
    return before


def _with_older(doc_id: str, before: dict[str, set[str]]) -> set[str]:
    known, todo = {doc_id}, [doc_id]
    while todo:
        older = before.get(todo.pop(), set()) - known
        known |= older
        todo += older
    return known


def _matching(artifact: Artifact, path: str, document: str) -> pa.Table:
    local = artifact.local(path)
    if _DOC_ID.fullmatch(document):
        first, last = document.ljust(_ID_DIGITS, "0"), document.ljust(_ID_DIGITS, "f")
        return read_range(local, first, last)
    columns = ["doc_id", "text", "source_id"]
    wanted = pc.field("source_id") == document
    return pq.read_table(local, columns=columns, filters=wanted)


def _quarantined(document: str, made: Sequence[Made]) -> str:
    """Where a place is asked for: what was set aside in its file."""
    file = document.rpartition(":")[0] or document
    rows = [
        row
        for one in made
        for path in _readable_paths(one.artifact, QUARANTINE_FILES)
        for row in pq.read_table(one.artifact.local(path)).to_pylist()
        if row["file"] == file
    ]
    if not rows:
        return "give a doc_id of 8 digits or more, or a place as documents name it: a.jsonl:17"
    shown = "; ".join(f"{row['offset']}: {row['reason']}" for row in rows[:_SHOWN])
    more = f" and {len(rows) - _SHOWN} more" if len(rows) > _SHOWN else ""
    return f"set aside in {file}, by byte or row: {shown}{more}"


def _readable_paths(artifact: Artifact, pattern: str) -> list[str]:
    """None where no copy is left."""
    try:
        return artifact.paths(pattern)
    except StoreError:
        return []


def _rows(
    artifact: Artifact, doc_id: str, pattern: str = DOCUMENT_FILES
) -> Iterator[dict[str, Any]]:
    for path in artifact.paths(pattern):
        yield from read_range(artifact.local(path), doc_id, doc_id).to_pylist()


def _kept_facts(row: dict[str, Any], *, is_first: bool) -> dict[str, Any]:
    facts = {name: row[name] for name in _ROW_FACTS if row.get(name) is not None}
    if not is_first:  # only what this step adds to it
        return {name: facts[name] for name in ("source_id", "cluster_size") if name in facts}
    size = {"bytes": len(row["text"].encode()), "begins with": beginning(row["text"])}
    return {"doc_id": row["doc_id"], **facts, **size}


def _removal_facts(
    artifact: Artifact, row: dict[str, Any], *, end: str = "removed so"
) -> dict[str, Any]:
    known = {name: row[name] for name in _REMOVAL_FACTS if row.get(name) is not None}
    place = {"source_id": row["source_id"]}
    return {**place, **known, "ledger": _ledger_row(artifact, row["rule"], end)}


def _masked_facts(artifact: Artifact, row: dict[str, Any]) -> dict[str, Any]:
    facts = _removal_facts(artifact, row, end="masked so")
    return {"new_doc_id" if name == "kept_doc_id" else name: facts[name] for name in facts}


def _left_out(artifact: Artifact) -> tuple[str, dict[str, Any]]:
    """What became of a document that a step neither kept nor lists: its ledger may name one way."""
    rules = list(artifact.read_json(LEDGER)["removed"])
    if len(rules) == 1:
        return f"removed: {rules[0]}", {"ledger": _ledger_row(artifact, rules[0])}
    return "not there", {"ledger": f"its ways out are {', '.join(rules) or 'none'}"}


def _ledger_row(artifact: Artifact, rule: str, end: str = "removed so") -> str:
    """What else went the same way."""
    counts = artifact.read_json(LEDGER)["removed"].get(rule, {})
    text = megabytes(counts.get("bytes", 0))
    return f"{plural(counts.get('documents', 0), 'document')}, {text} {end}"


def _ranks(tokens: AnyTokens, doc_id: str) -> list[int]:
    """The places of a document in a token store, or its draws; copies have one each."""
    wanted = ids_as_words([doc_id])[0]
    ranks: list[int] = np.flatnonzero((tokens.doc_ids == wanted).all(axis=1)).tolist()
    return ranks


def _several(numbers: list[int]) -> Any:
    """One number, or the first of many."""
    if len(numbers) == 1:
        return numbers[0]
    more = f" and {len(numbers) - _SHOWN} more" if len(numbers) > _SHOWN else ""
    return ", ".join(f"{number:,}" for number in numbers[:_SHOWN]) + more
