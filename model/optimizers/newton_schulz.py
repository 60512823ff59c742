"""The nearest orthogonal matrix, roughly and fast, for a stack of matrices at once.

Matrices stand in the last two axes; every axis before is a batch, so that an expert never meets
the others (maxtext #4798 took the expert axis for a row). The iteration is a quintic in each
singular value: it brings all of them near 1 and leaves the singular vectors where they are.
"""

from __future__ import annotations

import torch
from torch.distributed.tensor import DTensor, Replicate, Shard

# Jordan et al. 2024, https://kellerjordan.github.io/posts/muon/: chosen to rise steeply at 0, for
# the price that after five rounds a singular value lies in about 0.7..1.2, not at 1.
_COEFFICIENTS = (3.4445, -4.7750, 2.0315)
_ROUNDS = 5
_EPSILON = 1e-8  # marin, experiments/grug/moe_hero_ep/optimizer.py


def orthogonalized(update: torch.Tensor) -> torch.Tensor:
    """Each matrix of the stack with its singular values brought near 1, in fp32.

    A zero matrix stays zero. Of a DTensor each rank gathers only what cuts through its matrices,
    so that a stack that is sharded by experts is not gathered at all.
    """
    if not isinstance(update, DTensor):
        return _iterated(update)
    whole = [Replicate() if _cuts_matrices(p, update.ndim) else p for p in update.placements]
    gathered = update.redistribute(placements=whole)
    result = DTensor.from_local(
        _iterated(gathered.to_local()),
        gathered.device_mesh,
        gathered.placements,
        shape=gathered.shape,
        stride=gathered.stride(),
    )
    return result.redistribute(placements=update.placements)


def _cuts_matrices(placement: object, num_axes: int) -> bool:
    return isinstance(placement, Shard) and placement.dim >= num_axes - 2


def _iterated(update: torch.Tensor) -> torch.Tensor:
    tall = update.shape[-2] > update.shape[-1]  # the product of the short sides is the small one
    x = (update.mT if tall else update).float()[None].flatten(0, -3)
    x = x / torch.linalg.matrix_norm(x, keepdim=True).clamp(min=_EPSILON)
    a, b, c = _COEFFICIENTS
    for _ in range(_ROUNDS):
        gram = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    x = x.mT if tall else x
    return x.reshape(update.shape)
