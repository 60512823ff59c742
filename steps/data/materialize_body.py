"""Writes packed rows as an Arrow dataset in the layout of `datasets.save_to_disk`.

A row holds its real tokens only, nothing is padded: `position_ids` start anew with every piece and
`seq_lengths` are the lengths of the pieces, the names that transformers and TRL read. `doc_ids`
and `starts` say which document a piece is of, and where it stands in it.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
from datasets import Features

from pipeline.errors import ConfigError
from steps.data.ledger import Ledger, merged
from steps.data.summary import percent
from steps.formats import PACKED_ROWS
from steps.mixture import open_tokens
from steps.pack_plan import PackPlan
from steps.token_store import hex_ids

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from pipeline.body import Inputs, Output
    from steps.data.materialize import MaterializeConfig
    from steps.mixture import AnyTokens

FILE_TOKENS = 1 << 27  # about; half a gigabyte of ids in a file
BATCH_TOKENS = 1 << 20  # about what is in memory at once, unless one row is longer


@dataclass(frozen=True, kw_only=True)
class RowsShard:
    """The rows at the places from `begin` to `end` go into one file."""

    path: str
    begin: int
    end: int


class _Packed(NamedTuple):
    """An opened plan and its tokens."""

    plan: PackPlan
    tokens: AnyTokens


def run(config: MaterializeConfig, inputs: Inputs, output: Output) -> None:
    """Write all rows and what `datasets` needs to know about them."""
    packed = _opened(inputs)
    shards = _shards(packed.plan)
    ledger = merged(output.map_shards(write_rows, shards))
    ledger.write(output, step="materialize")
    output.write_json("dataset_info.json", {"features": _features()})
    output.write_json("state.json", _state(config, packed.plan, shards))
    output.write_json("summary.json", _summary(packed.plan, ledger, num_files=len(shards)))


def write_rows(
    config: MaterializeConfig, shard: RowsShard, inputs: Inputs, output: Output
) -> dict[str, Any]:
    """Write one file; returns the account of its tokens."""
    packed = _opened(inputs)
    ledger = Ledger()
    with output.open(shard.path) as sink, pa.ipc.new_stream(sink, PACKED_ROWS) as writer:
        for places in _batches(shard, packed.plan):
            rows = packed.plan.rows_at(places, seed=config.seed)
            batch = _record_batch(packed, rows)
            writer.write_batch(batch)
            pieces = _pieces(packed.plan, rows)
            ledger.enter(
                rows=rows.size,
                pieces=pieces.size,
                tokens=int(packed.plan.length[pieces].sum()),
            )
            ledger.leave(
                rows=batch.num_rows,
                pieces=len(batch.column("starts").flatten()),
                tokens=len(batch.column("input_ids").flatten()),
            )
    return ledger.as_json()


def _opened(inputs: Inputs) -> _Packed:
    plan, tokens = PackPlan(inputs["plan"]), open_tokens(inputs)
    if plan.facts["doc_ids_sha256"] != tokens.doc_ids_sha256:
        msg = (
            f"the pack plan is for other documents ({plan.facts['documents']}) than its tokens are"
            f" of ({tokens.num_documents}); pack these tokens"
        )
        raise ConfigError(msg)
    return _Packed(plan, tokens)


def _shards(plan: PackPlan) -> list[RowsShard]:
    """As many files as the rows fill; one if there are none, since `datasets` wants a file."""
    step = max(1, FILE_TOKENS // plan.facts["sequence_length"])
    begins = range(0, max(1, plan.num_rows), step)
    return [
        RowsShard(
            path=f"data-{number:05d}-of-{len(begins):05d}.arrow",
            begin=begin,
            end=min(begin + step, plan.num_rows),
        )
        for number, begin in enumerate(begins)
    ]


def _batches(shard: RowsShard, plan: PackPlan) -> Iterator[NDArray[np.int64]]:
    step = max(1, BATCH_TOKENS // plan.facts["sequence_length"])
    for begin in range(shard.begin, shard.end, step):
        yield np.arange(begin, min(begin + step, shard.end))


def _pieces(plan: PackPlan, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """The numbers of the pieces of these rows, row after row."""
    spans = zip(plan.first_piece[rows], plan.first_piece[rows + 1], strict=True)
    return np.concatenate([np.arange(first, end) for first, end in spans])


def _record_batch(packed: _Packed, rows: NDArray[np.int64]) -> pa.RecordBatch:
    plan, tokens = packed
    pieces = _pieces(plan, rows)
    documents, starts, lengths = plan.document[pieces], plan.start[pieces], plan.length[pieces]
    spans = zip(documents.tolist(), starts.tolist(), lengths.tolist(), strict=True)
    ids = [tokens.read(rank, start, length)[:length] for rank, start, length in spans]
    ends = np.cumsum(lengths)  # of the pieces, in tokens
    row_ends = np.cumsum(plan.first_piece[rows + 1] - plan.first_piece[rows])  # in pieces
    by_token, by_piece = ends[row_ends - 1], row_ends
    columns = [
        _lists(np.concatenate(ids), by_token, "input_ids"),
        _lists(np.arange(ends[-1]) - np.repeat(ends - lengths, lengths), by_token, "position_ids"),
        _lists(lengths, by_piece, "seq_lengths"),
        _lists(hex_ids(tokens.doc_ids[documents]), by_piece, "doc_ids"),
        _lists(starts + tokens.starts(documents), by_piece, "starts"),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=PACKED_ROWS)


def _lists(values: Any, ends: NDArray[np.int64], name: str) -> pa.ListArray:
    """One list per row, which ends in `values` where `ends` says."""
    kind = PACKED_ROWS.field(name).type
    offsets = pa.array(np.concatenate([[0], ends]), pa.int32())
    return pa.ListArray.from_arrays(offsets, pa.array(values).cast(kind.value_type), type=kind)


def _features() -> dict[str, Any]:
    features: dict[str, Any] = Features.from_arrow_schema(PACKED_ROWS).to_dict()
    return features


def _state(config: MaterializeConfig, plan: PackPlan, shards: list[RowsShard]) -> dict[str, Any]:
    """What `datasets` keeps of a dataset beside its features.

    The fingerprint names its caches, so that it must differ where the rows do.
    """
    names = ("doc_ids_sha256", "sequence_length", "seed", "cut")
    rows = [*(plan.facts[name] for name in names), config.seed]  # type: ignore[literal-required]  # four literals
    return {
        "_data_files": [{"filename": shard.path} for shard in shards],
        "_fingerprint": hashlib.sha256(repr(rows).encode()).hexdigest()[:16],
        "_format_columns": None,
        "_format_kwargs": {},
        "_format_type": None,
        "_output_all_columns": False,
        "_split": None,
    }


def _summary(plan: PackPlan, ledger: Ledger, *, num_files: int) -> dict[str, Any]:
    tokens, width = ledger.left.get("tokens", 0), plan.facts["sequence_length"]
    facts = {
        "rows": f"{plan.num_rows:,} of at most {width:,} tokens",
        "tokens": f"{tokens:,}",
        "fill": percent(tokens, plan.num_rows * width),
        "files": f"{num_files:,}",
    }
    return {"title": "Packed rows", "facts": facts, "tables": []}
