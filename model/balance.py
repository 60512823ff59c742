"""The three ways to keep experts equally busy, as pure functions. N tokens, E experts, K chosen.

A router only reports; biases move in `next_bias`, which the training loop calls once per update.
So neither evaluation nor a recomputed forward can move them (torchtitan issues 1222, 1593, 4412).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from model.config import QuantileBias, SignBias

if TYPE_CHECKING:
    import torch

    from model.config import Balance


def upper_quantile(margins_NE: torch.Tensor, top_k: int) -> torch.Tensor:
    """Per expert, the margin that the `top_k / E` largest share of its tokens exceeds.

    It lies halfway between the last margin that is in and the first that is out.
    """
    num_tokens, num_experts = margins_NE.shape
    inside = min(max(1, round(num_tokens * top_k / num_experts)), num_tokens)
    sorted_NE = margins_NE.sort(0, descending=True).values
    return (sorted_NE[inside - 1] + sorted_NE[min(inside, num_tokens - 1)]) / 2


def balance_loss(scores_NE: torch.Tensor, chosen_E: torch.Tensor) -> torch.Tensor:
    """E times the sum of load share times mean probability: 1 when uniform, E in collapse.

    Fedus et al. 2021, arXiv:2101.03961, equations 4-6. Shares are divided by all choices, so that
    the scale does not depend on `top_k` (transformers issue 43688), and each layer has a loss of
    its own, so that two layers collapsed onto different experts do not cancel (31464).
    """
    share_E = chosen_E / chosen_E.sum()
    probability_E = (scores_NE / scores_NE.sum(1, keepdim=True)).mean(0)
    return scores_NE.shape[1] * (share_E * probability_E).sum()


def next_bias(
    rule: Balance | None,
    bias_E: torch.Tensor,
    *,
    chosen_E: torch.Tensor,
    quantile_E: torch.Tensor | None,
) -> torch.Tensor:
    """The bias for the next update, given what the router reported for this one."""
    if isinstance(rule, QuantileBias) and quantile_E is not None:
        return -quantile_E
    if isinstance(rule, SignBias):
        overload_E = chosen_E * chosen_E.shape[0] - chosen_E.sum()  # int64: exact sign
        step_E = -rule.rate * overload_E.sign().to(bias_E.dtype)
        return bias_E + step_E - step_E.mean()
    return bias_E
