"""A model config as JSON and back, so that published weights carry what they are weights of."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from model.config import (
    AttentionConfig,
    Balance,
    BalanceLoss,
    DenseLayers,
    ExpertsConfig,
    ModelConfig,
    NormConfig,
    QuantileBias,
    SignBias,
    SlidingWindow,
)

FORMAT = "seaglass-model/2"
_BALANCES = {"quantile_bias": QuantileBias, "sign_bias": SignBias, "balance_loss": BalanceLoss}


def config_to_json(config: ModelConfig) -> dict[str, Any]:
    """The config as a JSON value that `config_from_json` turns back into an equal one."""
    value = asdict(config)
    value["experts"]["balance"] = _balance_to_json(config.experts.balance)
    return {"format": FORMAT, **value}


def config_from_json(value: dict[str, Any]) -> ModelConfig:
    """The config that `config_to_json` wrote.

    Raises:
        ValueError: another format, or a value out of its bounds.

    """
    fields = dict(value)
    found = fields.pop("format", None)
    if found != FORMAT:
        msg = f"model config has format={found!r}; this version reads {FORMAT!r}"
        raise ValueError(msg)
    attention, experts = dict(fields.pop("attention")), dict(fields.pop("experts"))
    window, dense = attention.pop("window"), fields.pop("dense")
    balance = _balance_from_json(experts.pop("balance"))
    return ModelConfig(
        attention=AttentionConfig(
            window=None if window is None else SlidingWindow(**window), **attention
        ),
        experts=ExpertsConfig(balance=balance, **experts),
        dense=None if dense is None else DenseLayers(**dense),
        norm=NormConfig(**fields.pop("norm")),
        **fields,
    )


def _balance_to_json(balance: Balance | None) -> dict[str, Any] | None:
    if balance is None:
        return None
    kind = next(name for name, cls in _BALANCES.items() if isinstance(balance, cls))
    return {"kind": kind, **asdict(balance)}


def _balance_from_json(value: dict[str, Any] | None) -> Balance | None:
    if value is None:
        return None
    fields = dict(value)
    kind = fields.pop("kind")
    if kind not in _BALANCES:
        msg = f"balance kind={kind!r} must be one of {sorted(_BALANCES)}"
        raise ValueError(msg)
    balance: Balance = _BALANCES[kind](**fields)
    return balance
