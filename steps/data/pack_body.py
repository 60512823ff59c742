"""Plans packed rows, group by group of documents.

A group is what a seeded hash of the doc_ids says, so that a plan depends on the documents and the
seed and on nothing else: not on shards, workers or the order in which anything arrived. Of a
mixture, a group holds draws of one phase, so that no row crosses the end of a phase.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from kernels.pack import cpu, reference
from pipeline.errors import LedgerError
from steps.data.ledger import Ledger, merged
from steps.data.summary import percent
from steps.formats import PIECES, PLAN_FILE, PlanFacts
from steps.mixture import open_tokens
from steps.token_store import seeded_hash

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kernels.pack.reference import Pieces
    from pipeline.body import Inputs, Output
    from steps.data.pack import PackConfig
    from steps.mixture import AnyTokens

GROUP_DOCUMENTS = 1 << 20  # about; larger groups fill no better and cost more memory
_SMALL_GROUP = 20_000  # documents that the reference plans before numba has compiled
_SHORTEST_PIECE = 32  # tokens that a cut leaves at least, in rows that are long enough


@dataclass(frozen=True, kw_only=True)
class Group:
    """One of a phase's power of two of groups: the documents whose hash starts with `index`."""

    number: int  # over all phases
    phase: int
    index: int
    num_groups: int


def run(config: PackConfig, inputs: Inputs, output: Output) -> None:
    """Plan all groups and publish the plan."""
    store = open_tokens(inputs)
    planned = output.map_shards(plan_group, _groups(store))
    ledger = merged(group["ledger"] for group in planned)
    _check_against_store(ledger, store)
    ledger.write(output, step="pack")
    facts: PlanFacts = {
        "sequence_length": config.sequence_length,
        "seed": config.seed,
        "cut": config.cut,
        "documents": ledger.left.get("documents", 0),
        "tokens": ledger.left.get("tokens", 0),
        "doc_ids_sha256": store.doc_ids_sha256,
        "rows": sum(group["rows"] for group in planned),
        "pieces": sum(group["pieces"] for group in planned),
        "long_documents": sum(group["long_documents"] for group in planned),
        "cut_documents": sum(group["cut_documents"] for group in planned),
        "files": [
            {key: group[key] for key in ("path", "phase", "rows", "pieces")} for group in planned
        ],
    }
    output.write_json(PLAN_FILE, facts)
    output.write_json("summary.json", _summary(facts, _phase_rows(planned, config)))


def _groups(store: AnyTokens) -> list[Group]:
    groups: list[Group] = []
    for phase, size in enumerate(np.diff(store.phase_bounds).tolist()):
        num_groups = 1 << max(0, (size - 1) // GROUP_DOCUMENTS).bit_length()
        for index in range(num_groups):
            groups.append(
                Group(number=len(groups), phase=phase, index=index, num_groups=num_groups)
            )
    return groups


def plan_group(config: PackConfig, shard: Group, inputs: Inputs, output: Output) -> dict[str, Any]:
    """Plan one group and write its file."""
    store = open_tokens(inputs)
    ranks = _members(store, shard, config.seed)
    lengths = store.lengths[ranks]
    pieces = _plan(lengths, config)
    check_tiling(pieces, lengths)
    ledger = Ledger()
    ledger.enter(documents=lengths.size, tokens=int(lengths.sum()))
    ledger.remove("without a token", documents=int((lengths == 0).sum()))
    num_pieces = np.bincount(pieces.document, minlength=lengths.size)
    ledger.leave(documents=int((num_pieces > 0).sum()), tokens=int(pieces.length.sum()))
    path = f"plan-{shard.number:05d}.parquet"
    with output.open(path) as sink:
        pq.write_table(_table(pieces, ranks), sink, compression="zstd")
    return {
        "path": path,
        "phase": shard.phase,
        "rows": pieces.num_rows,
        "pieces": pieces.row.size,
        "long_documents": int((lengths > config.sequence_length).sum()),
        "cut_documents": int((num_pieces > 1).sum()),
        "ledger": ledger.as_json(),
    }


def _members(store: AnyTokens, group: Group, seed: int) -> NDArray[np.int64]:
    """The ranks of the group's documents, in the order of their hash."""
    first, end = (int(bound) for bound in store.phase_bounds[group.phase :][:2])
    hashed = seeded_hash(store.identities[first:end], key=seed)
    bits = group.num_groups.bit_length() - 1
    number = hashed >> np.uint64(64 - bits) if bits else np.zeros_like(hashed)
    members = np.flatnonzero(number == group.index)
    return first + members[np.argsort(hashed[members], kind="stable")]


def _plan(lengths: NDArray[np.int64], config: PackConfig) -> Pieces:
    # The plans are identical; below some size, compiling takes longer than planning.
    small = lengths.size <= _SMALL_GROUP and config.cut == "long"
    plan_rows = reference.plan_rows if small else cpu.plan_rows
    min_piece = max(1, min(_SHORTEST_PIECE, config.sequence_length // 128))
    return plan_rows(
        lengths, config.sequence_length, min_piece=min_piece, cut_any=config.cut == "any"
    )


def check_tiling(pieces: Pieces, lengths: NDArray[np.int64]) -> None:
    """Raise LedgerError unless the pieces cover every document exactly once.

    The sums of a ledger would not see a token that is lost here and doubled there.
    """
    order = np.lexsort((pieces.start, pieces.document))
    document, start = pieces.document[order], pieces.start[order]
    end = start + pieces.length[order]
    is_first = np.diff(document, prepend=-1) != 0
    is_last = np.diff(document, append=-1) != 0
    expected_start = np.where(is_first, 0, np.roll(end, 1))
    wrong = (start != expected_start) | (is_last & (end != lengths[document]))
    covered = np.zeros(lengths.size, bool)
    covered[document] = True
    if wrong.any() or not (covered | (lengths == 0)).all():
        at = int(document[wrong][0]) if wrong.any() else int(np.flatnonzero(~covered)[0])
        msg = (
            f"the pieces of document {at} of its group do not cover its {lengths[at]} tokens"
            " exactly once; nothing is published. This is a bug in kernels/pack"
        )
        raise LedgerError(msg)


def _check_against_store(ledger: Ledger, store: AnyTokens) -> None:
    """The groups together hold what the store says it holds."""
    planned = (ledger.entered.get("documents", 0), ledger.entered.get("tokens", 0))
    stored = (store.facts["documents"], store.facts["tokens"])
    if planned != stored:
        msg = (
            f"the groups of step 'pack' hold {planned[0]} documents and {planned[1]} tokens, what"
            f" it packs {stored[0]} and {stored[1]}; build that again: seaglass rerun RECIPE"
            " tokenize, or mix"
        )
        raise LedgerError(msg)


def _table(pieces: Pieces, ranks: NDArray[np.int64]) -> pa.Table:
    first_of_row = np.searchsorted(pieces.row, pieces.row, side="left")
    columns = [
        pieces.row,
        np.arange(pieces.row.size) - first_of_row,
        ranks[pieces.document],
        pieces.start,
        pieces.length,
    ]
    arrays = [pa.array(c).cast(field.type) for c, field in zip(columns, PIECES, strict=True)]
    return pa.Table.from_arrays(arrays, schema=PIECES)


def _phase_rows(planned: list[dict[str, Any]], config: PackConfig) -> list[list[str]]:
    """A line of the summary for each phase."""
    lines = []
    for phase in range(planned[-1]["phase"] + 1):
        groups = [group for group in planned if group["phase"] == phase]
        rows = sum(group["rows"] for group in groups)
        tokens = sum(group["ledger"]["out"].get("tokens", 0) for group in groups)
        fill = percent(tokens, rows * config.sequence_length)
        lines.append([f"{phase + 1}", f"{rows:,}", f"{tokens:,}", fill])
    return lines


def _summary(facts: PlanFacts, phases: list[list[str]]) -> dict[str, Any]:
    places = facts["rows"] * facts["sequence_length"]
    shown = {
        "rows": f"{facts['rows']:,} of {facts['sequence_length']:,} tokens",
        "fill": percent(facts["tokens"], places),
        "tokens": f"{facts['tokens']:,}, none lost, {places - facts['tokens']:,} padding",
        "documents": f"{facts['documents']:,}",
        "longer than a row": f"{facts['long_documents']:,}",
        "cut": f"{facts['cut_documents']:,}",
    }
    title = f"Pack plan, {facts['sequence_length']:,} tokens"
    table = {"title": "Phases", "columns": ["phase", "rows", "tokens", "fill"], "rows": phases}
    return {"title": title, "facts": shown, "tables": [table] if len(phases) > 1 else []}
