"""The body of pretraining: resume, update until done, publish."""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import torch

from model.config_json import config_from_json, config_to_json
from model.initialization import initialize
from model.reproducible import reproducible
from model.transformer import Transformer
from model.weights import load_model, weights_to_bytes
from pipeline.errors import ConfigError, StepError
from steps.mixture import open_tokens
from steps.pack_plan import PackPlan
from steps.train.loader import Loader
from steps.train.state import curve_to_bytes, restore_state, save_state
from steps.train.trainer import Trainer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from model.config import ModelConfig
    from pipeline.body import Inputs, Output
    from steps.train.pretrain import PretrainConfig
    from steps.train.trainer import UpdateReport

# A single bad batch is skipped and told; this many in a row mean that the run itself is broken.
MAX_SKIPPED_IN_A_ROW = 10


def pretrain(config: PretrainConfig, inputs: Inputs, output: Output) -> None:
    """Train from scratch, from weights, or from the last state that an earlier attempt saved."""
    loader = Loader(
        tokens=open_tokens(inputs),
        plan=PackPlan(inputs["plan"]),
        batch_size=config.train.batch_size,
        seed=config.train.seed,
    )
    # Bits depend on these two, so that a difference between two runs can be told from the diary.
    output.event("arithmetic", threads=output.cpus, cpu=torch.backends.cpu.get_cpu_capability())
    with reproducible(threads=output.cpus):
        model = _starting_model(config, inputs)
        _check_vocabulary(model.config, loader)
        trainer = Trainer(config.train, model)
        curve = _resume(trainer, output)
        _train(trainer, loader, output, curve=curve)
        output.write_bytes("model.safetensors", weights_to_bytes(model))
    output.write_bytes("curve.jsonl", curve_to_bytes(curve))
    output.write_json("config.json", _describe(config, loader, model=model.config))
    output.write_json("summary.json", _summary(model.config, loader, curve))


def _starting_model(config: PretrainConfig, inputs: Inputs) -> Transformer:
    if config.model is None:
        about = inputs["weights"].read_json("config.json")
        return load_model(
            config_from_json(about["model"]), inputs["weights"].local("model.safetensors")
        )
    model = Transformer(config.model)
    initialize(model, seed=config.train.seed)
    return model


def _check_vocabulary(config: ModelConfig, loader: Loader) -> None:
    needed, has = loader.store.facts["vocab_size"], config.vocab_size
    if has < needed:
        msg = (
            f"vocab_size={has} of the model is smaller than vocab_size={needed} of the token "
            "store; give the model at least the tokenizer's"
        )
        raise ConfigError(msg)


def _resume(trainer: Trainer, output: Output) -> list[UpdateReport]:
    states = output.states()
    if not states:
        return []
    curve = restore_state(trainer, states[-1], output.scratch)
    output.event("resumed", state=states[-1].key, updates=len(curve))
    return curve


def _train(trainer: Trainer, loader: Loader, output: Output, *, curve: list[UpdateReport]) -> None:
    """Append one report per update to `curve`, until it is complete."""
    total, every = trainer.config.num_updates, trainer.config.checkpoint_every
    while len(curve) < total:
        started = time.perf_counter()
        report = trainer.update(loader.batch(len(curve)))
        curve.append(report)
        _tell(report, output, total=total, seconds=time.perf_counter() - started)
        _refuse_to_skip_on(curve)
        if every is not None and len(curve) % every == 0 and len(curve) < total:
            save_state(trainer, curve, output)


def _tell(report: UpdateReport, output: Output, *, total: int, seconds: float) -> None:
    """Progress for the live table, and an event for the diary; neither is part of the artifact."""
    output.event("metrics", **asdict(report))
    if report.skipped:
        output.event(
            "skipped_update",
            update=report.update,
            reason="loss or gradient is not finite",
            loss_nats=report.loss_nats,
            grad_norm=report.grad_norm,
        )
    loss = {} if report.loss_nats is None else {"loss": report.loss_nats}
    rate = report.num_tokens / seconds
    output.progress(
        done=report.update + 1, total=total, unit="updates", tokens_per_second=rate, **loss
    )


def _refuse_to_skip_on(curve: Sequence[UpdateReport]) -> None:
    last = curve[-MAX_SKIPPED_IN_A_ROW:]
    if len(last) == MAX_SKIPPED_IN_A_ROW and all(report.skipped for report in last):
        msg = (
            f"updates {last[0].update}..{last[-1].update} were all skipped, because loss or "
            "gradient was not finite; lower the learning_rate or look at the batches"
        )
        raise StepError(msg)


def _describe(config: PretrainConfig, loader: Loader, *, model: ModelConfig) -> dict[str, Any]:
    """What a reader of the weights must know."""
    optimizer = config.train.optimizer
    return {
        "model": config_to_json(model),
        "train": {
            **asdict(config.train),
            "optimizer": {"kind": type(optimizer).__name__, **asdict(optimizer)},
        },
        "sequence_length": loader.sequence_length,
        "tokenizer": {name: loader.store.facts[name] for name in ("vocab_size", "eos_id")},
    }


def _summary(config: ModelConfig, loader: Loader, curve: Sequence[UpdateReport]) -> dict[str, Any]:
    num_tokens = sum(report.num_tokens for report in curve)
    skipped = sum(report.skipped for report in curve)
    dropped = sum(report.dropped_tokens for report in curve)
    facts = {
        "parameters": f"{config.total_parameters:,}",
        "active parameters": f"{config.active_parameters:,}",
        "tokens": f"{num_tokens:,} ({num_tokens / loader.store.facts['tokens']:.2f} passes)",
        "updates": f"{len(curve):,}, {skipped} skipped",
        "last loss": _nats(curve[-1].loss_nats),
        "dropped tokens": f"{dropped:,}",
    }
    marks = sorted({round(i * (len(curve) - 1) / 5) for i in range(6)})
    rows = [
        [
            curve[mark].update + 1,
            _nats(curve[mark].loss_nats),
            f"{max(curve[mark].load_per_layer):.2f}",
        ]
        for mark in marks
    ]
    columns = ["update", "loss", "busiest expert / mean"]
    tables = [{"title": "Training curve", "columns": columns, "rows": rows}]
    return {"title": "Pretrained model", "facts": facts, "tables": tables}


def _nats(value: float | None) -> str:
    return "not finite" if value is None else f"{value:.3f} nats per token"
