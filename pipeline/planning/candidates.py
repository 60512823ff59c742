"""The action keys that a step may be found under, and the one that it runs under.

Without waivers that is one: its own. A waiver adds the key that a predecessor had, and one more:
that of an attempt which takes over parts of the predecessor. Such an attempt has a key of its own,
for its result leans on the waiver as well: once that is revoked, neither the result nor any part
that grew out of the predecessor's is found.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pipeline.encoding import digest
from pipeline.store import layout

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pipeline.planning.identity import Identity
    from pipeline.store.store import Store
    from pipeline.store.waivers import Waivers

RESUMED_FORMAT = "seaglass-resumed/1"


@dataclass(frozen=True)
class Candidate:
    """An action key, the waivers that lead to it, and the actions whose parts it takes over."""

    action_key: str
    waivers: tuple[str, ...] = ()
    resumes: tuple[str, ...] = ()


def resumed_key(action_key: str, predecessors: Sequence[str]) -> str:
    """The key of an action that takes over parts of predecessors, given by their definitions."""
    return digest((RESUMED_FORMAT, action_key, tuple(predecessors)))


def candidates_of(
    identity: Identity,
    title: str,
    contents: Mapping[str, str],
    *,
    definition: str,
    waivers: Waivers,
) -> list[Candidate]:
    """The keys of a step under a definition, the exact one first, then by the nearest waivers.

    `contents` are the content digests of the inputs.
    """
    exact = identity.action_key(title, contents, definition=definition)
    found = [Candidate(exact)]
    for _, chain in waivers.predecessors(definition):
        ids = tuple(item.id for item in chain)
        before = tuple(item.waiver.predecessor for item in chain)
        keys = [identity.action_key(title, contents, definition=one) for one in before]
        own = resumed_key(exact, before)
        others = [resumed_key(k, before[n:]) for n, k in enumerate(keys[:-1], 1)] + keys[-1:]
        nearer = [c.action_key for c in found if set(c.waivers) <= set(ids)]
        found.append(Candidate(own, ids, resumes=(*nearer, *others)))
        found += [Candidate(key, ids) for key in others]
    return found


def most_advanced(store: Store, candidates: Sequence[Candidate]) -> Candidate:
    """The key to run under: the exact one, unless a waiver brings parts that it lacks."""
    ways = [candidates[0], *(candidate for candidate in candidates if candidate.resumes)]
    if len(ways) == 1:
        return ways[0]
    return max(ways, key=lambda way: num_parts(store, way))


def num_parts(store: Store, candidate: Candidate) -> int:
    """How many finished parts an attempt under a key would find."""
    keys = (candidate.action_key, *candidate.resumes)
    found = (key for one in keys for key in store.adapter.list(layout.parts(one)))
    return sum(key.endswith(".json") for key in found)
