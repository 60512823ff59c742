"""One of two gloo processes: `python two_processes.py RANK FOLDER` writes `RANK.json` there.

Every process knows the whole tensors, so that it can hold what the shards give against them.
"""

import json
import sys
from pathlib import Path

import torch
from torch import distributed
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor

from model.optimizers.build import build
from model.optimizers.config import AdamH, Muon, MuonH, Peak
from model.optimizers.moves import matrix_norm
from model.optimizers.newton_schulz import orthogonalized

# Shape and placement: rows, columns, experts, and experts that two ranks cannot share evenly.
CASES = {
    "rows": ((10, 6), Shard(0)),
    "columns": ((10, 6), Shard(1)),
    "experts": ((4, 6, 8), Shard(0)),
    "uneven experts": ((3, 8, 6), Shard(0)),
    "one expert": ((1, 8, 6), Shard(0)),
    "rows of experts": ((3, 9, 6), Shard(1)),
    "replicated": ((6, 6), Replicate()),
}


def _random(shape, seed):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def _error(found, expected):
    """The largest difference, as a share of the largest value."""
    whole = found.full_tensor() if isinstance(found, DTensor) else found
    return float((whole - expected).abs().max() / expected.abs().max())


def _trained(parameter, config, gradients):
    module = torch.nn.Module()
    module.register_parameter("up", torch.nn.Parameter(parameter))
    optimizer = build(module, config, Peak(learning_rate=0.02))
    for gradient in gradients:
        module.up.grad = gradient
        optimizer.step()
    return module.up.detach()


def _errors(shape, placement, mesh):
    def sharded(whole):
        return distribute_tensor(whole, mesh, [placement])

    whole = _random(shape, 0)
    gradients = [_random(shape, seed) for seed in (1, 2, 3)]
    errors = {
        "norm": _error(matrix_norm(sharded(whole)), matrix_norm(whole)),
        "orthogonalized": _error(orthogonalized(sharded(whole)), orthogonalized(whole)),
    }
    for config in (Muon(), AdamH(), MuonH()):
        found = _trained(sharded(whole.clone()), config, [sharded(g) for g in gradients])
        assert found.placements == (placement,), found.placements
        expected = _trained(whole.clone(), config, gradients)
        errors[type(config).__name__] = _error(found, expected)
        errors[f"{type(config).__name__} moved"] = _error(found, whole)
    return errors


def main(rank, folder):
    store = f"file://{folder / 'rendezvous'}"
    distributed.init_process_group("gloo", init_method=store, rank=rank, world_size=2)
    mesh = init_device_mesh("cpu", (2,))
    errors = {name: _errors(shape, placement, mesh) for name, (shape, placement) in CASES.items()}
    (folder / f"{rank}.json").write_text(json.dumps(errors))
    distributed.destroy_process_group()


if __name__ == "__main__":
    torch.set_num_threads(1)
    main(int(sys.argv[1]), Path(sys.argv[2]))
