"""Draws the phases of a mixture from its token stores, exact to the token.

What a phase takes of a source is an interval of that source's stream. It follows from the config
and the sizes of the stores alone, so that phases are drawn apart from each other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.errors import ConfigError
from steps.data.ledger import Ledger
from steps.data.mix import Epochs, Tokens, Weight
from steps.data.mix_summary import summary
from steps.data.set_aside import plural
from steps.formats import DRAWS, MIXTURE_FILE, MixtureFacts
from steps.token_store import TokenStore, seeded_hash

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from pipeline.body import Inputs, Output
    from steps.data.mix import MixConfig, Phase


@dataclass(frozen=True, kw_only=True)
class Span:
    """The tokens from `begin` to `end` of one source's stream."""

    source: int
    begin: int
    end: int


@dataclass(frozen=True, kw_only=True)
class PhaseSpans:
    """All that one phase takes."""

    index: int
    spans: tuple[Span, ...]


def run(config: MixConfig, inputs: Inputs, output: Output) -> None:
    """Draw all phases and publish the mixture."""
    stores = [TokenStore(source) for source in inputs.many("sources")]
    _check_one_vocabulary(config, stores)
    phases = _phases(config, [store.facts["tokens"] for store in stores])
    drawn = output.map_shards(draw_phase, phases)
    ledger = _ledger(config, stores, drawn)
    ledger.write(output, step="mix")
    facts: MixtureFacts = {
        "vocab_size": stores[0].facts["vocab_size"],
        "eos_id": stores[0].facts["eos_id"],
        "documents": sum(phase["draws"] for phase in drawn),
        "tokens": ledger.left.get("tokens", 0),
        "seed": config.seed,
        "sources": [
            {"name": name, **{unit: store.facts[unit] for unit in ("documents", "tokens")}}
            for name, store in zip(config.sources, stores, strict=True)
        ],
        "phases": [{key: phase[key] for key in ("path", "draws", "tokens")} for phase in drawn],
    }
    output.write_json(MIXTURE_FILE, facts)
    output.write_json("summary.json", summary(config, facts, drawn))


def draw_phase(
    config: MixConfig, shard: PhaseSpans, inputs: Inputs, output: Output
) -> dict[str, Any]:
    """Write the draws of one phase; returns what it took of each source, counted from them."""
    sources = inputs.many("sources")
    tables, taken = [], []
    for span in shard.spans:
        store = TokenStore(sources[span.source])
        draws = pa.concat_tables(_draws(store, span, seed=config.seed))
        tables.append(draws)
        taken.append(_taken(draws, store, span))
    path = f"draws-{shard.index:05d}.parquet"
    with output.open(path) as sink:
        pq.write_table(pa.concat_tables(tables), sink, compression="zstd")
    return {
        "path": path,
        "draws": sum(table.num_rows for table in tables),
        "tokens": sum(source["tokens"] for source in taken),
        "sources": taken,
    }


def budgets(phase: Phase, sizes: dict[str, int]) -> dict[str, int]:
    """How many tokens a phase takes of each source that it names, given the sizes of all."""
    shares = dict(sorted(phase.shares.items()))
    tokens = {name: share.count for name, share in shares.items() if isinstance(share, Tokens)}
    for name, share in shares.items():
        if isinstance(share, Epochs):
            tokens[name] = share.count * sizes[name]
    weights = {name: share.parts for name, share in shares.items() if isinstance(share, Weight)}
    if phase.tokens is None:
        return tokens
    left, parts = phase.tokens - sum(tokens.values()), sum(weights.values())
    if left < 0:
        msg = (
            f"tokens={phase.tokens} of a phase are fewer than the {sum(tokens.values())} that its"
            f" exact shares take ({tokens}); raise tokens, or lower a share"
        )
        raise ConfigError(msg)
    for name, weight in weights.items():
        tokens[name] = left * weight // parts
    largest = sorted(weights, key=lambda name: (-(left * weights[name] % parts), name))
    for name in largest[: phase.tokens - sum(tokens.values())]:
        tokens[name] += 1
    return tokens


def _phases(config: MixConfig, sizes: list[int]) -> list[PhaseSpans]:
    """Where every phase begins and ends in every stream."""
    reached = dict.fromkeys(config.sources, 0)
    by_name = dict(zip(config.sources, sizes, strict=True))
    phases = []
    for index, phase in enumerate(config.phases):
        spans = []
        for name, count in sorted(budgets(phase, by_name).items()):
            begin, reached[name] = reached[name], reached[name] + count
            number = config.sources.index(name)
            spans.append(Span(source=number, begin=begin, end=reached[name]))
        phases.append(PhaseSpans(index=index, spans=tuple(spans)))
    _check_sizes(config, by_name, reached)
    return phases


def _draws(store: TokenStore, span: Span, *, seed: int) -> Iterator[pa.Table]:
    """The draws of a span, a table for each epoch that it touches; at least one."""
    size = store.facts["tokens"]
    last = max(span.begin, span.end - 1) // size if size else 0
    for epoch in range(span.begin // size if size else 0, last + 1):
        order = _order(store, epoch=epoch, seed=seed)
        ends = np.cumsum(store.lengths[order])
        starts = ends - store.lengths[order]
        begin = np.maximum(starts, span.begin - epoch * size)
        end = np.minimum(ends, span.end - epoch * size)
        touched = begin < end
        columns = [
            np.full(order.size, span.source)[touched],
            np.full(order.size, epoch)[touched],
            order[touched],
            (begin - starts)[touched],
            (end - begin)[touched],
        ]
        arrays = [pa.array(c).cast(field.type) for c, field in zip(columns, DRAWS, strict=True)]
        yield pa.Table.from_arrays(arrays, schema=DRAWS)


def _order(store: TokenStore, *, epoch: int, seed: int) -> NDArray[np.int64]:
    """The ranks in the order in which one pass reads them."""
    hashed = seeded_hash(store.doc_ids, key=(seed << 64) | epoch)
    return np.argsort(hashed, kind="stable")


def _taken(draws: pa.Table, store: TokenStore, span: Span) -> dict[str, Any]:
    epoch, document, start, length = (
        draws.column(name).to_numpy() for name in ("epoch", "document", "start", "length")
    )
    cut = (start > 0) | (start + length < store.lengths[document])
    is_new = start == 0  # the rest of a document that an earlier phase began is no new one
    return {
        "source": span.source,
        "declared": span.end - span.begin,
        "begin": span.begin,
        "tokens": int(length.sum()),
        "documents": int(is_new.sum()),
        "first_documents": int((is_new & (epoch == 0)).sum()),
        "cut_documents": int(cut.sum()),
    }


def _ledger(
    config: MixConfig, stores: Sequence[TokenStore], drawn: Sequence[dict[str, Any]]
) -> Ledger:
    """What each store holds against what was drawn of it; the first pass over a store is its own.

    A document counts where its first token is drawn.
    """
    ledger = Ledger()
    for number, (name, store) in enumerate(zip(config.sources, stores, strict=True)):
        taken = [t for phase in drawn for t in phase["sources"] if t["source"] == number]
        tokens, size = sum(t["tokens"] for t in taken), store.facts["tokens"]
        declared = sum(t["declared"] for t in taken)
        documents = sum(t["documents"] for t in taken)
        first = sum(t["first_documents"] for t in taken)
        ledger.enter(documents=store.num_documents, tokens=size)
        ledger.add(
            f"{name}: read again", documents=documents - first, tokens=max(0, declared - size)
        )
        ledger.remove(
            f"{name}: not drawn",
            documents=store.num_documents - first,
            tokens=max(0, size - declared),
        )
        ledger.leave(documents=documents, tokens=tokens)
    return ledger


def _check_one_vocabulary(config: MixConfig, stores: Sequence[TokenStore]) -> None:
    for fact in ("vocab_size", "eos_id", "tokenizer"):
        found = {
            name: store.facts[fact]
            for name, store in zip(config.sources, stores, strict=True)
            if store.facts[fact] is not None
        }
        if len(set(found.values())) > 1:
            msg = (
                f"the sources of a mixture have different tokens, {fact} by source: {found};"
                " tokenize all of them with one tokenizer"
            )
            raise ConfigError(msg)


def _check_sizes(config: MixConfig, sizes: dict[str, int], reached: dict[str, int]) -> None:
    for name, count in reached.items():
        if count > config.max_epochs * sizes[name]:
            msg = (
                f"the phases take {plural(count, 'token')} of source {name!r}, which holds"
                f" {sizes[name]:,}:"
                f" more than max_epochs={config.max_epochs} allows; take less, or raise it"
            )
            raise ConfigError(msg)
