"""Token-choice routing: which experts a token visits, with what weight, and what is dropped.

Everything here is fp32, and counts are int64: in bf16 they are 256 apart at 40,000 tokens, which
turns the sign of a bias update (Megatron-LM issue 7081). N tokens, D width, E experts, K chosen,
M choices carried out.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import nn

from model import balance
from model.config import BalanceLoss, QuantileBias
from model.precision import parameter

if TYPE_CHECKING:
    from model.config import ExpertsConfig, ModelConfig


class RouterReport(NamedTuple):
    """What one router did with one batch; all but the two losses carry no gradient.

    `quantile_E` is the margin that would have given each expert its share, for `QuantileBias`.
    """

    chosen_E: torch.Tensor
    dropped_E: torch.Tensor
    z_loss: torch.Tensor
    balance_loss: torch.Tensor
    entropy_nats: torch.Tensor
    quantile_E: torch.Tensor | None


class Routing(NamedTuple):
    """Choices carried out, sorted by expert (`kernels.dispatch` numbers them), and the report."""

    order_M: torch.Tensor
    weights_NK: torch.Tensor
    counts: list[int]
    report: RouterReport


class Router(nn.Module):
    """A linear scorer with an optional bias that selects and never weighs."""

    bias_E: torch.Tensor

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config.experts
        self.weight = parameter(config.d_model, config.experts.num_experts)
        if config.experts.has_bias:
            self.register_buffer("bias_E", torch.zeros(config.experts.num_experts))

    def forward(self, x_ND: torch.Tensor) -> Routing:
        """Choose `top_k` experts for every token."""
        logits_NE = x_ND.float() @ self.weight
        scores_NE = _scores(logits_NE, self.config)
        chosen_NK, quantile_E = self._select(logits_NE.detach(), scores_NE.detach())
        weights_NK = _weights(scores_NE.gather(1, chosen_NK), self.config.weights_sum)
        chosen_E = torch.bincount(chosen_NK.flatten(), minlength=self.config.num_experts)
        order_M, kept_E = _carried_out(chosen_NK, chosen_E, self.config)
        report = RouterReport(
            chosen_E=chosen_E,
            dropped_E=chosen_E - kept_E,
            z_loss=logits_NE.logsumexp(1).square().mean(),
            balance_loss=self._balance_loss(scores_NE, chosen_E),
            entropy_nats=_entropy_nats(logits_NE.detach()),
            quantile_E=quantile_E,
        )
        return Routing(order_M, weights_NK, kept_E.tolist(), report)

    @torch.no_grad()
    def update_bias(self, report: RouterReport) -> None:
        """Move the bias, in place, by what this router reported; nothing to do without one."""
        if self.config.has_bias:
            rule, chosen_E, quantile_E = self.config.balance, report.chosen_E, report.quantile_E
            self.bias_E.copy_(
                balance.next_bias(rule, self.bias_E, chosen_E=chosen_E, quantile_E=quantile_E)
            )

    def _select(
        self, logits_NE: torch.Tensor, scores_NE: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """The chosen experts, best first: QB adds its bias to logits, the sign rule to scores."""
        top_k = self.config.top_k
        if isinstance(self.config.balance, QuantileBias):
            best_NK, chosen_NK = (logits_NE + self.bias_E).topk(top_k + 1, dim=1)
            margins_NE = logits_NE - best_NK[:, top_k:]
            return chosen_NK[:, :top_k], balance.upper_quantile(margins_NE, top_k)
        biased_NE = scores_NE + self.bias_E if self.config.has_bias else scores_NE
        return biased_NE.topk(top_k, dim=1).indices, None

    def _balance_loss(self, scores_NE: torch.Tensor, chosen_E: torch.Tensor) -> torch.Tensor:
        if not isinstance(self.config.balance, BalanceLoss):
            return scores_NE.new_zeros(())
        return balance.balance_loss(scores_NE, chosen_E)


def _scores(logits_NE: torch.Tensor, config: ExpertsConfig) -> torch.Tensor:
    return logits_NE.sigmoid() if config.score == "sigmoid" else logits_NE.softmax(1)


def _weights(scores_NK: torch.Tensor, weights_sum: float | None) -> torch.Tensor:
    """Combine weights; scaled to their sum if one is asked for.

    Scores are positive, but their sum can underflow: then a token would get infinite weights.
    """
    if weights_sum is None:
        return scores_NK
    total_N1 = scores_NK.sum(1, keepdim=True).clamp(min=torch.finfo(scores_NK.dtype).tiny)
    return scores_NK * (weights_sum / total_N1)


def _carried_out(
    chosen_NK: torch.Tensor, chosen_E: torch.Tensor, config: ExpertsConfig
) -> tuple[torch.Tensor, torch.Tensor]:
    """Choices sorted by expert, earlier tokens first, without those that an expert has no room for.

    The sort is stable, so that who is dropped is a function of the batch alone.
    """
    flat_M = chosen_NK.flatten()
    order_M = flat_M.sort(stable=True).indices
    if config.capacity_factor is None:
        return order_M, chosen_E
    room = math.ceil(config.capacity_factor * flat_M.shape[0] / config.num_experts)
    starts_E = chosen_E.cumsum(0) - chosen_E
    place_M = torch.arange(flat_M.shape[0], device=flat_M.device) - starts_E[flat_M[order_M]]
    return order_M[place_M < room], chosen_E.clamp(max=room)


def _entropy_nats(logits_NE: torch.Tensor) -> torch.Tensor:
    log_p_NE = logits_NE.log_softmax(1)
    return -(log_p_NE.exp() * log_p_NE).sum(1).mean()
