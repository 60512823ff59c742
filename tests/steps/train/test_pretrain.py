import json
from dataclasses import replace

import pytest
import torch

from model.config import AttentionConfig, ExpertsConfig, ModelConfig
from model.config_json import config_from_json
from model.optimizers.config import AdamH, AdamW, Muon, MuonH
from model.weights import load_model
from pipeline.errors import ConfigError, RecipeError, StepError
from pipeline.folder import FolderOutput, run_body
from pipeline.step import Resources, Step
from steps.train import pretrain_body
from steps.train.pretrain import PretrainConfig, TrainConfig, pretrain
from steps.train.trainer import Trainer


def _model(vocab_size: int) -> ModelConfig:
    return ModelConfig(
        vocab_size=vocab_size,
        d_model=16,
        num_layers=2,
        attention=AttentionConfig(num_heads=2, num_kv_heads=1, head_dim=8),
        experts=ExpertsConfig(num_experts=4, top_k=2, d_expert=8, d_shared=8),
    )


def _config(vocab_size: int, **changes) -> PretrainConfig:
    train = {"num_updates": 8, "batch_size": 2, "learning_rate": 1e-2, "checkpoint_every": 3}
    return PretrainConfig(model=_model(vocab_size), train=TrainConfig(**{**train, **changes}))


def _run(config, corpus, into):
    inputs = {"plan": corpus.plan, "tokens": corpus.tokens}
    return run_body(pretrain_body.pretrain, config, inputs, into, cpus=1)


def _interrupt(monkeypatch, config, corpus, into, *, at):
    """Run until update `at` begins, and stop there as a killed worker would."""
    original = Trainer.update

    def interrupted(self, batch):
        if batch.update == at:
            raise KeyboardInterrupt
        return original(self, batch)

    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "update", interrupted)
        with pytest.raises(KeyboardInterrupt):
            _run(config, corpus, into)


def _files(artifact):
    return {path: artifact.read_bytes(path) for path in artifact.paths()}


def test_two_runs_write_the_same_bytes(tiny_corpus, tmp_path):
    config = _config(tiny_corpus.vocab_size)

    first = _run(config, tiny_corpus, tmp_path / "a")
    second = _run(config, tiny_corpus, tmp_path / "b")

    assert _files(first) == _files(second)
    assert first.paths() == ["config.json", "curve.jsonl", "model.safetensors", "summary.json"]


@pytest.mark.parametrize("update", [4, 7])
def test_a_resumed_run_writes_the_bytes_of_an_uninterrupted_one(
    tiny_corpus, tmp_path, monkeypatch, update
):
    config = _config(tiny_corpus.vocab_size)
    whole = _run(config, tiny_corpus, tmp_path / "a")
    _interrupt(monkeypatch, config, tiny_corpus, tmp_path / "b", at=update)

    resumed = _run(config, tiny_corpus, tmp_path / "b")

    assert FolderOutput(tmp_path / "b").states()[0].key == "update-00000003"
    assert _files(resumed) == _files(whole)


@pytest.mark.parametrize("optimizer", [Muon(), AdamH(), MuonH()])
def test_a_run_resumes_to_the_bit_with_every_optimizer(
    tiny_corpus, tmp_path, monkeypatch, optimizer
):
    config = _config(
        tiny_corpus.vocab_size,
        num_updates=5,
        optimizer=optimizer,
        weight_decay=0.0,
        schedule="wsd",
    )
    whole = _run(config, tiny_corpus, tmp_path / "a")
    _interrupt(monkeypatch, config, tiny_corpus, tmp_path / "b", at=4)

    resumed = _run(config, tiny_corpus, tmp_path / "b")

    assert _files(resumed) == _files(whole)


def test_a_checkpoint_names_its_optimizer(tiny_corpus, tmp_path):
    config = _config(
        tiny_corpus.vocab_size, num_updates=1, optimizer=MuonH(epsilon=6e-15), weight_decay=0.0
    )

    artifact = _run(config, tiny_corpus, tmp_path / "a")

    assert artifact.read_json("config.json")["train"]["optimizer"] == {
        "kind": "MuonH",
        "beta1": 0.9,
        "beta2": 0.95,
        "epsilon": 6e-15,
        "momentum": 0.95,
        "matrix_rate_ratio": 13 / 3,
    }


def test_a_config_without_an_optimizer_means_adamw():
    train = TrainConfig(num_updates=1, batch_size=1, learning_rate=0.1)

    assert train.optimizer == AdamW()


@pytest.mark.parametrize("optimizer", [AdamH(), MuonH()])
def test_weight_decay_is_refused_where_norms_are_kept(optimizer):
    with pytest.raises(ConfigError, match=r"weight_decay=0\.1 .* needs weight_decay=0"):
        TrainConfig(num_updates=1, batch_size=1, learning_rate=0.1, optimizer=optimizer)


def test_a_model_that_begins_with_zeros_is_refused_where_norms_are_kept():
    model = replace(_model(50), output_init_scale=0.0)
    train = TrainConfig(
        num_updates=1, batch_size=1, learning_rate=0.1, optimizer=MuonH(), weight_decay=0.0
    )

    with pytest.raises(ConfigError, match=r"output_init_scale=0\.0 .* positive for MuonH"):
        PretrainConfig(model=model, train=train)


def test_a_resumed_run_repeats_no_update(tiny_corpus, tmp_path, monkeypatch):
    config = _config(tiny_corpus.vocab_size)
    _interrupt(monkeypatch, config, tiny_corpus, tmp_path / "b", at=5)
    seen = []
    original = Trainer.update

    def counted(self, batch):
        seen.append(batch.update)
        return original(self, batch)

    monkeypatch.setattr(Trainer, "update", counted)

    _run(config, tiny_corpus, tmp_path / "b")

    assert seen == [3, 4, 5, 6, 7]


def test_training_lowers_the_loss(tiny_corpus, tmp_path):
    config = _config(tiny_corpus.vocab_size, num_updates=20, checkpoint_every=None)

    artifact = _run(config, tiny_corpus, tmp_path / "a")

    curve = [json.loads(line) for line in artifact.read_bytes("curve.jsonl").splitlines()]
    assert [row["update"] for row in curve] == list(range(20))
    assert curve[-1]["loss_nats"] < curve[0]["loss_nats"] - 1


def test_the_published_weights_load_as_the_published_config_says(tiny_corpus, tmp_path):
    config = _config(tiny_corpus.vocab_size)

    artifact = _run(config, tiny_corpus, tmp_path / "a")

    read = config_from_json(artifact.read_json("config.json")["model"])
    model = load_model(read, artifact.local("model.safetensors"))
    assert read == config.model
    assert all(bool(torch.isfinite(value).all()) for value in model.state_dict().values())


def test_an_update_that_is_not_finite_is_skipped_and_told(tiny_corpus, tmp_path, monkeypatch):
    config = _config(tiny_corpus.vocab_size, num_updates=3, checkpoint_every=None)
    original = torch.nn.utils.clip_grad_norm_
    calls, weights = [], []

    def broken(parameters, max_norm):
        parameters = list(parameters)
        calls.append(1)
        weights.append(parameters[0].detach().clone())
        norm = original(parameters, max_norm)
        return torch.tensor(float("nan")) if len(calls) == 2 else norm

    monkeypatch.setattr(torch.nn.utils, "clip_grad_norm_", broken)

    artifact = _run(config, tiny_corpus, tmp_path / "a")

    curve = [json.loads(line) for line in artifact.read_bytes("curve.jsonl").splitlines()]
    assert [row["skipped"] for row in curve] == [False, True, False]
    assert curve[1]["grad_norm"] is None
    assert torch.equal(weights[1], weights[2])
    assert not torch.equal(weights[0], weights[1])


def test_a_run_that_skips_ten_updates_in_a_row_fails(tiny_corpus, tmp_path, monkeypatch):
    config = _config(tiny_corpus.vocab_size, num_updates=20, checkpoint_every=None)
    nan = torch.tensor(float("nan"))
    monkeypatch.setattr(torch.nn.utils, "clip_grad_norm_", lambda *_: nan)

    with pytest.raises(StepError, match=r"updates 0\.\.9 were all skipped"):
        _run(config, tiny_corpus, tmp_path / "a")


def test_a_vocabulary_that_is_too_small_is_refused(tiny_corpus, tmp_path):
    config = _config(200)

    with pytest.raises(ConfigError, match=r"vocab_size=200 of the model is smaller than"):
        _run(config, tiny_corpus, tmp_path / "a")


def test_training_leaves_torch_as_it_found_it(tiny_corpus, tmp_path):
    before = (torch.get_num_threads(), torch.are_deterministic_algorithms_enabled())
    config = _config(tiny_corpus.vocab_size, num_updates=1)

    _run(config, tiny_corpus, tmp_path / "a")

    assert (torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()) == before


def test_the_declaration_finds_the_tokens_of_the_plan():
    tokens = Step("tokenize", "a:b")
    packed = Step("pack", "a:b", inputs={"tokens": tokens})

    step = pretrain(packed, model=_model(300), train=_config(300).train)

    assert step.inputs == {"plan": packed, "tokens": tokens}


def test_a_step_without_tokens_is_refused():
    with pytest.raises(RecipeError, match="has no input 'tokens'"):
        pretrain(Step("pack", "a:b"), model=_model(300), train=_config(300).train)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_updates": 0}, "num_updates=0 must be at least 1"),
        ({"learning_rate": 0.0}, "learning_rate=0.0 must be positive"),
        ({"warmup_fraction": 1.5}, "warmup_fraction=1.5 must be in 0..1"),
        ({"weight_decay": -1.0}, "weight_decay=-1.0 must not be negative"),
        ({"checkpoint_every": 0}, "checkpoint_every=0 must be at least 1"),
    ],
)
def test_a_train_config_checks_itself(changes, message):
    with pytest.raises(ConfigError, match=message):
        _config(300, **changes)


def test_a_training_process_lets_others_use_the_cores_it_waits_on():
    packed = Step("pack", "a:b", inputs={"tokens": Step("tokenize", "a:b")})
    resources = Resources(cpus=2, environment={"A": "1"})

    step = pretrain(packed, model=_model(300), train=_config(300).train, resources=resources)

    assert step.resources.cpus == 2
    assert step.resources.environment == {"A": "1", "OMP_WAIT_POLICY": "PASSIVE"}
