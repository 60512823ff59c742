"""Which parameter moves how. Free of torch.

| kind                            | AdamW | Muon | AdamH | MuonH | decays |
|---------------------------------|-------|------|-------|-------|--------|
| matrix, expert by expert        | Adam  | Muon | AdamH | MuonH | yes    |
| head                            | Adam  | Adam | AdamH | AdamH | yes    |
| embedding, at a rate of its own | Adam  | Adam | Adam  | Adam  | no     |
| plain: router, gates, gains, .. | Adam  | Adam | Adam  | Adam  | no     |

It is Marin's (experiments/grug/moe_hero_ep/optimizer.py): what is applied to tokens as a linear
map has a direction worth orthogonalising, and a norm that the norm after it makes meaningless. A
row of the embedding and of the router stands for a thing of its own, and the head's rows for the
same words. AdamH and MuonH decay nothing: a matrix on a sphere has nowhere to decay to.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

from model.optimizers.config import AdamH, AdamW, Muon, MuonH, Optimizer

Kind: TypeAlias = Literal["matrix", "head", "embedding", "plain"]
KINDS: tuple[Kind, ...] = ("matrix", "head", "embedding", "plain")

# Parts of a name whose parameters are not one-dimensional and yet no linear map of tokens: the
# router's rows are experts, a head gate's columns heads, a short convolution's entries taps.
_PLAIN_PARTS = {"router", "head_gate", "taps"}


class Rule(NamedTuple):
    """Where a parameter heads, and how it goes there."""

    direction: Literal["adam", "orthogonal"]
    move: Literal["decayed", "sphere"]


_ADAM = Rule("adam", "decayed")
_RULES: dict[type[Optimizer], dict[Kind, Rule]] = {
    AdamW: {"matrix": _ADAM, "head": _ADAM},
    Muon: {"matrix": Rule("orthogonal", "decayed"), "head": _ADAM},
    AdamH: {"matrix": Rule("adam", "sphere"), "head": Rule("adam", "sphere")},
    MuonH: {"matrix": Rule("orthogonal", "sphere"), "head": Rule("adam", "sphere")},
}


def kind_of(name: str, num_axes: int) -> Kind:
    """The kind of a parameter by its name in the model and its number of axes.

    >>> [kind_of("blocks.0.experts.router.weight", 2), kind_of("blocks.0.experts.up", 3)]
    ['plain', 'matrix']
    """
    if name in {"embedding", "head"}:
        return "embedding" if name == "embedding" else "head"
    return "plain" if num_axes == 1 or _PLAIN_PARTS & set(name.split(".")) else "matrix"


def rule_of(optimizer: Optimizer, kind: Kind) -> Rule:
    """The table's cell."""
    return _RULES[type(optimizer)].get(kind, _ADAM)
