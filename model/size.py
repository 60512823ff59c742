"""What a model costs before anything is built: FLOPs, memory, traffic. Free of torch.

Closed forms over `model.counts`; what each counts, and what it leaves out, stands beside it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from model.counts import count_parameters

if TYPE_CHECKING:
    from model.config import ModelConfig

_FP32, _BF16 = 4, 2  # bytes
_BACKWARD = 2  # times the forward: gradients of inputs and of weights


@dataclass(frozen=True, kw_only=True)
class Mesh:
    """Devices by axis: `replica` holds copies, `data` shards, `expert` splits the experts."""

    replica: int = 1
    data: int = 1
    expert: int = 1

    def __post_init__(self) -> None:
        for name in ("replica", "data", "expert"):
            if getattr(self, name) < 1:
                msg = f"mesh axis {name}={getattr(self, name)} must be at least 1"
                raise ValueError(msg)

    @property
    def num_devices(self) -> int:
        """All of them."""
        return self.replica * self.data * self.expert


@dataclass(frozen=True, kw_only=True)
class Flops:
    """Floating-point operations per token.

    Two per parameter that a token meets (Kaplan et al. 2020, arXiv:2001.08361, table 1), and
    4 * heads * head_dim per token that it attends to, for scores and sum. `training` is the
    forward three times; what is recomputed is not counted again. `training_by_marin` takes the
    head and the parameters that Marin calls active, and lets every token attend to a full window
    or sequence, also where there is nothing before it yet: so it gives the hero's 2.70e24.
    """

    forward: float
    training: float
    training_by_marin: float


def flops_per_token(config: ModelConfig, sequence_length: int) -> Flops:
    """For documents as long as the sequence; shorter ones attend to less."""
    attention, counts = config.attention, count_parameters(config)
    layers = [attention.layer(i, config.num_layers) for i in range(config.num_layers)]
    unread_heads = sum(attention.num_kv_heads - layer.num_kv_heads for layer in layers)
    unread = 2 * config.d_model * attention.head_dim * unread_heads
    windows = [min(layer.window or sequence_length, sequence_length) for layer in layers]
    # A token at place p of window W sees min(p + 1, W) tokens; the mean over all places:
    seen = sum(w - w * (w - 1) / 2 / sequence_length for w in windows)
    each = 4 * attention.num_heads * attention.head_dim
    forward = 2 * (counts.active - unread) + each * seen
    by_marin = 2 * (counts.active_by_marin + counts.head - unread) + each * sum(windows)
    times = 1 + _BACKWARD
    return Flops(forward=forward, training=times * forward, training_by_marin=times * by_marin)


@dataclass(frozen=True, kw_only=True)
class Memory:
    """Bytes on each device while training, with parameters sharded over `data` and `expert`.

    Parameters, gradients and AdamW's two moments are fp32 (Muon keeps one moment). `gathered` is
    one layer in bf16, whole but for the experts of other devices; `block_inputs` is what is kept
    of each block when it is recomputed in the backward. What lives inside one block, and buffers
    of communication, are not counted.
    """

    parameters: int
    gradients: int
    moments: int
    gathered: int
    block_inputs: int

    @property
    def total(self) -> int:
        """All that is counted."""
        state = self.parameters + self.gradients + self.moments
        return state + self.gathered + self.block_inputs


def memory_per_device(config: ModelConfig, mesh: Mesh, *, tokens: int) -> Memory:
    """For `tokens` per device and update.

    Raises:
        ValueError: the experts cannot be split evenly.

    """
    if config.experts.num_experts % mesh.expert:
        msg = f"mesh axis expert={mesh.expert} must divide num_experts={config.experts.num_experts}"
        raise ValueError(msg)
    counts = count_parameters(config)
    held = _FP32 * -(-counts.total // (mesh.data * mesh.expert))
    experts = counts.chosen + counts.idle
    rest = counts.total - experts - counts.head - counts.embedding
    sparse = config.num_layers - config.num_dense_layers
    layer = rest // config.num_layers + experts // sparse // mesh.expert
    return Memory(
        parameters=held,
        gradients=held,
        moments=2 * held,
        gathered=_BF16 * layer,
        block_inputs=_BF16 * tokens * config.d_model * config.num_layers,
    )


@dataclass(frozen=True, kw_only=True)
class AllToAll:
    """Bytes that each device sends in one layer with experts, in bf16, under an even load.

    Each choice of a token travels on its own, also where two experts of one token are neighbours;
    the share that stays at home does not travel. The backward sends both ways once more.
    """

    dispatch: int
    combine: int

    @property
    def update(self) -> int:
        """Forward and backward."""
        return _BACKWARD * (self.dispatch + self.combine)


def all_to_all_per_layer(config: ModelConfig, mesh: Mesh, *, tokens: int) -> AllToAll:
    """For `tokens` per device and update."""
    experts = config.experts
    row = _BF16 * experts.width(config.d_model)
    sent = tokens * experts.top_k * row * (mesh.expert - 1) // mesh.expert
    return AllToAll(dispatch=sent, combine=sent)
