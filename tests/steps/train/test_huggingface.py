import json
from pathlib import Path

import pytest
import torch
from tokenizers import Tokenizer
from transformers import AutoModelForCausalLM, AutoTokenizer

from kernels.linear_cross_entropy import IGNORED
from model.batch import TokenBatch
from model.config import AttentionConfig, BalanceLoss, ExpertsConfig, ModelConfig
from model.config_json import config_from_json
from model.presets import PRESETS
from model.weights import load_model
from pipeline.errors import ConfigError
from pipeline.folder import run_body
from pipeline.step import NoConfig, Step
from steps.train import huggingface_body, pretrain_body
from steps.train.huggingface import ExportConfig, export_huggingface
from steps.train.pretrain import PretrainConfig, TrainConfig, pretrain

TEXT = "the sea is wide and glass green"
TRAIN = TrainConfig(num_updates=4, batch_size=2, learning_rate=1e-2, checkpoint_every=3)


def _model(vocab_size, **changes):
    experts = {"num_experts": 4, "top_k": 2, "d_expert": 8, "score": "softmax"}
    return ModelConfig(
        vocab_size=vocab_size,
        d_model=16,
        num_layers=2,
        attention=AttentionConfig(num_heads=2, num_kv_heads=1, head_dim=8, qk_norm="gain"),
        experts=ExpertsConfig(**{**experts, "balance": BalanceLoss(), **changes}),
    )


def _pretrain(corpus, into, *, model=None, weights=None, train=TRAIN):
    inputs = {"plan": corpus.plan, "tokens": corpus.tokens}
    if weights is not None:
        inputs["weights"] = weights
    config = PretrainConfig(model=model, train=train)
    return run_body(pretrain_body.pretrain, config, inputs, into, cpus=1)


def _export(checkpoint, into, tokenizer=None, *, model_type="qwen3_moe", **changes):
    config, inputs = ExportConfig(model_type=model_type, **changes), {"checkpoint": checkpoint}
    if tokenizer is None:
        return run_body(huggingface_body.export_huggingface, config, inputs, into, cpus=1)
    inputs["tokenizer"] = tokenizer
    return run_body(huggingface_body.export_with_tokenizer, config, inputs, into, cpus=1)


def _import(folder, into):
    inputs = {"folder": folder}
    return run_body(huggingface_body.import_huggingface, NoConfig(), inputs, into, cpus=1)


def _load(checkpoint):
    config = config_from_json(checkpoint.read_json("config.json")["model"])
    return load_model(config, checkpoint.local("model.safetensors"))


def _losses(checkpoint):
    lines = checkpoint.read_bytes("curve.jsonl").splitlines()
    return [json.loads(line)["loss_nats"] for line in lines]


@pytest.fixture(scope="module")
def trained(tiny_corpus, tmp_path_factory):
    """A checkpoint that a family can express."""
    into = tmp_path_factory.mktemp("trained") / "checkpoint"
    return _pretrain(tiny_corpus, into, model=_model(tiny_corpus.vocab_size))


def test_an_exported_folder_is_all_that_transformers_needs(trained, tiny_corpus, tmp_path):
    folder = tmp_path / "theirs"
    _export(trained, folder, tiny_corpus.tokenizer)

    tokens_N = torch.tensor(AutoTokenizer.from_pretrained(folder)(TEXT)["input_ids"])
    with torch.no_grad():
        theirs = AutoModelForCausalLM.from_pretrained(folder)(tokens_N[None]).logits[0]

    ours = Tokenizer.from_file(str(tiny_corpus.tokenizer / "tokenizer.json")).encode(TEXT).ids
    batch = TokenBatch(
        tokens_N=torch.tensor(ours),
        targets_N=torch.full((len(ours),), IGNORED),
        lengths=(len(ours),),
    )
    assert tokens_N.tolist() == ours
    torch.testing.assert_close(theirs, _load(trained).logits(batch), atol=1e-4, rtol=0)


def test_an_exported_folder_says_where_a_text_ends_and_how_long_it_was(
    trained, tiny_corpus, tmp_path
):
    about = trained.read_json("config.json")

    artifact = _export(trained, tmp_path / "theirs", tiny_corpus.tokenizer)

    config = artifact.read_json("config.json")
    assert config["eos_token_id"] == about["tokenizer"]["eos_id"]
    assert config["max_position_embeddings"] == about["sequence_length"]
    assert artifact.read_json("tokenizer_config.json")["eos_token"] == "<|endoftext|>"


def test_the_files_of_an_export_are_those_of_the_hub(trained, tmp_path):
    artifact = _export(trained, tmp_path / "theirs", shard_bytes=20_000, dtype="bfloat16")

    assert artifact.paths() == [
        "config.json",
        "model-00001-of-00002.safetensors",
        "model-00002-of-00002.safetensors",
        "model.safetensors.index.json",
        "summary.json",
    ]


def test_what_was_exported_imports_to_the_bit(trained, tiny_corpus, tmp_path):
    _export(trained, tmp_path / "theirs", tiny_corpus.tokenizer)

    back = _import(tmp_path / "theirs", tmp_path / "ours")

    ours, theirs = trained.read_json("config.json"), back.read_json("config.json")
    assert back.read_bytes("model.safetensors") == trained.read_bytes("model.safetensors")
    assert {key: ours[key] for key in ("model", "sequence_length", "tokenizer")} == theirs
    assert (
        Path(tmp_path / "ours" / "tokenizer.json").read_bytes()
        == (tiny_corpus.tokenizer / "tokenizer.json").read_bytes()
    )


def test_a_checkpoint_of_transformers_is_trained_on(trained, tiny_corpus, tmp_path):
    _export(trained, tmp_path / "theirs")
    imported = _import(tmp_path / "theirs", tmp_path / "ours")

    further = _pretrain(tiny_corpus, tmp_path / "further", weights=imported)

    assert _losses(further)[0] < _losses(trained)[0] - 0.1
    assert further.read_json("config.json")["model"] == imported.read_json("config.json")["model"]


def test_a_model_that_a_family_lacks_is_refused_before_it_is_trained():
    packed = Step("pack", "a:b", inputs={"tokens": Step("tokenize", "a:b")})
    checkpoint = pretrain(packed, model=PRESETS["marin-hero"], train=TRAIN)

    with pytest.raises(ConfigError, match=r"cannot express attention.*exclusive=True"):
        export_huggingface(checkpoint, config=ExportConfig(model_type="qwen3_moe"))


def test_a_checkpoint_that_a_family_lacks_is_refused_by_name(trained, tmp_path):
    with pytest.raises(ConfigError, match=r"'mixtral' .*qk_norm='gain' .* as 'qwen3_moe'"):
        _export(trained, tmp_path / "theirs", model_type="mixtral")


def test_a_tokenizer_of_another_model_is_refused(tiny_corpus, tmp_path):
    small = tiny_corpus.vocab_size
    checkpoint = _pretrain(tiny_corpus, tmp_path / "checkpoint", model=_model(small))
    about = checkpoint.read_json("config.json")
    about["model"]["vocab_size"] = small - 1
    (tmp_path / "checkpoint" / "config.json").write_text(json.dumps(about), encoding="utf-8")

    with pytest.raises(ConfigError, match=f"tokenizer has {small} tokens, the model vocab_size="):
        _export(tmp_path / "checkpoint", tmp_path / "theirs", tiny_corpus.tokenizer)


@pytest.mark.parametrize(
    "gone", ["model.safetensors.index.json", "model-00001-of-00001.safetensors"]
)
def test_a_folder_without_its_weights_is_refused(trained, tmp_path, gone):
    _export(trained, tmp_path / "theirs")
    (tmp_path / "theirs" / gone).unlink()

    with pytest.raises(ConfigError, match=r"the imported folder lacks model.*safetensors, which"):
        _import(tmp_path / "theirs", tmp_path / "ours")


def test_other_files_that_hold_the_weights_once_more_are_left_alone(trained, tmp_path):
    _export(trained, tmp_path / "theirs")
    (tmp_path / "theirs" / "consolidated.safetensors").write_bytes(b"not even a tensor")

    back = _import(tmp_path / "theirs", tmp_path / "ours")

    assert back.read_bytes("model.safetensors") == trained.read_bytes("model.safetensors")


def test_an_empty_shard_is_refused():
    with pytest.raises(ConfigError, match="shard_bytes=0 must be at least 1"):
        ExportConfig(model_type="olmoe", shard_bytes=0)
