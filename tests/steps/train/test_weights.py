"""Training that goes on from weights."""

import json

import pytest
import torch

from model.config import AttentionConfig, ExpertsConfig, ModelConfig
from model.config_json import config_from_json
from model.weights import load_model
from pipeline.errors import RecipeError
from pipeline.folder import FolderInputs, run_body
from pipeline.step import Step
from steps.train import pretrain_body
from steps.train.pretrain import PretrainConfig, TrainConfig, pretrain
from steps.train.trainer import Trainer

TRAIN = TrainConfig(num_updates=4, batch_size=2, learning_rate=1e-2, checkpoint_every=3)
FURTHER = PretrainConfig(model=None, train=TRAIN)


def _model(vocab_size):
    return ModelConfig(
        vocab_size=vocab_size,
        d_model=16,
        num_layers=2,
        attention=AttentionConfig(num_heads=2, num_kv_heads=1, head_dim=8),
        experts=ExpertsConfig(num_experts=4, top_k=2, d_expert=8),
    )


def _run(config, corpus, into, **weights):
    inputs = {"plan": corpus.plan, "tokens": corpus.tokens, **weights}
    return run_body(pretrain_body.pretrain, config, inputs, into, cpus=1)


def _losses(checkpoint):
    lines = checkpoint.read_bytes("curve.jsonl").splitlines()
    return [json.loads(line)["loss_nats"] for line in lines]


def _step(**changes):
    packed = Step("pack", "a:b", inputs={"tokens": Step("tokenize", "a:b")})
    return pretrain(packed, train=TRAIN, **changes)


@pytest.fixture(scope="module")
def weights(tiny_corpus, tmp_path_factory):
    """A checkpoint whose router biases have moved."""
    into = tmp_path_factory.mktemp("weights") / "checkpoint"
    return _run(
        PretrainConfig(model=_model(tiny_corpus.vocab_size), train=TRAIN), tiny_corpus, into
    )


def test_training_goes_on_where_the_weights_are(weights, tiny_corpus, tmp_path):
    further = _run(FURTHER, tiny_corpus, tmp_path / "a", weights=weights)

    assert _losses(further)[0] < _losses(weights)[0] - 0.1
    assert further.read_json("config.json")["model"] == weights.read_json("config.json")["model"]


def test_weights_bring_their_router_biases(weights):
    config = config_from_json(weights.read_json("config.json")["model"])
    expected = load_model(config, weights.local("model.safetensors")).state_dict()

    model = pretrain_body._starting_model(FURTHER, FolderInputs({"weights": weights}))

    biases = [name for name in expected if name.endswith("bias_E")]
    assert all(bool(expected[name].any()) for name in biases)
    assert all(torch.equal(model.state_dict()[name], value) for name, value in expected.items())


def test_training_leaves_the_file_that_it_began_with(weights, tiny_corpus, tmp_path):
    before = weights.read_bytes("model.safetensors")

    further = _run(FURTHER, tiny_corpus, tmp_path / "a", weights=weights)

    assert weights.read_bytes("model.safetensors") == before
    assert further.read_bytes("model.safetensors") != before


def test_training_from_weights_resumes_to_the_bit(weights, tiny_corpus, tmp_path, monkeypatch):
    whole = _run(FURTHER, tiny_corpus, tmp_path / "whole", weights=weights)
    original = Trainer.update

    def interrupted(self, batch):
        if batch.update == 3:
            raise KeyboardInterrupt
        return original(self, batch)

    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "update", interrupted)
        with pytest.raises(KeyboardInterrupt):
            _run(FURTHER, tiny_corpus, tmp_path / "resumed", weights=weights)

    resumed = _run(FURTHER, tiny_corpus, tmp_path / "resumed", weights=weights)

    assert resumed.read_bytes("model.safetensors") == whole.read_bytes("model.safetensors")


def test_weights_are_an_input_of_their_own():
    weights = Step("import_huggingface", "a:b")

    step = _step(weights=weights)

    assert step.inputs["weights"] is weights
    assert step.config.model is None


@pytest.mark.parametrize("given", [{}, {"model": _model(300), "weights": Step("w", "a:b")}])
def test_pretrain_wants_a_model_or_weights(given):
    with pytest.raises(RecipeError, match="either model=, to train from scratch, or weights="):
        _step(**given)
