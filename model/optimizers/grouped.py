"""One optimizer whose groups each name a direction and a move."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from model.optimizers import directions, moves

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_DIRECTIONS = {"adam": directions.adam, "orthogonal": directions.orthogonal}
_MOVES = {"decayed": moves.decayed, "sphere": moves.on_sphere}


class GroupedOptimizer(torch.optim.Optimizer):
    """Every parameter by the rule of its group; one state dict for all of them."""

    def __init__(self, groups: Iterable[dict[str, Any]]) -> None:
        super().__init__(groups, defaults={})

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> None:  # type: ignore[override]
        """Move every parameter that has a gradient; torch's interface wants the closure."""
        assert closure is None
        for group in self.param_groups:
            direction, move = _DIRECTIONS[group["direction"]], _MOVES[group["move"]]
            for parameter in group["params"]:
                if parameter.grad is not None:
                    state = self.state[parameter]
                    move(parameter, direction(parameter.grad, state, group), group)
