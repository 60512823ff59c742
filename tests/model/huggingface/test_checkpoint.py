"""What transformers computes from our files, and we from theirs, over random small configs."""

import random

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoConfig, AutoModelForCausalLM

from kernels.linear_cross_entropy import IGNORED
from model.batch import TokenBatch
from model.config import (
    AttentionConfig,
    BalanceLoss,
    DenseLayers,
    ExpertsConfig,
    ModelConfig,
    NormConfig,
)
from model.huggingface.families import FAMILIES
from model.weights import weights_to_bytes

LOGITS = {"atol": 1e-4, "rtol": 0.0}
SEEDS = range(4)
DRAWN = [(name, seed) for name in FAMILIES for seed in SEEDS]


def _draw(model_type, seed):
    """A random config that the family can express, in widths that torch's grouped matmul takes."""
    pick, family = random.Random(f"{model_type} {seed}").choice, FAMILIES[model_type]
    num_kv_heads, head_dim = pick([1, 2, 3]), pick([4, 8, 12])
    num_heads = num_kv_heads * pick([1, 2, 3])
    num_experts = pick([1, 3, 8])
    width = num_heads * head_dim if not family.any_head_dim else pick([12, 20])
    has_dense_layers = family.has_dense_layers and pick([True, False])
    return ModelConfig(
        vocab_size=pick([40, 51]),
        d_model=width,
        num_layers=pick([2, 3]),
        attention=AttentionConfig(
            num_heads=num_heads,
            num_kv_heads=num_kv_heads,
            head_dim=head_dim,
            qk_norm=family.qk_norm,
            rope_theta=pick([1e4, 1e6]),
        ),
        experts=ExpertsConfig(
            num_experts=num_experts,
            top_k=pick(range(1, num_experts + 1)),
            d_expert=pick([8, 12]),
            score="softmax",
            weights_sum=pick([1.0, None]) if family.chooses_sum else 1.0,
            balance=pick([BalanceLoss(weight=0.02), None]),
        ),
        dense=DenseLayers(count=1, d_hidden=7) if has_dense_layers else None,
        norm=NormConfig(eps=pick([1e-5, 1e-6])),
        tied_head=pick([True, False]),
    )


def _batch(tokens_N):
    return TokenBatch(
        tokens_N=tokens_N,
        targets_N=torch.full_like(tokens_N, IGNORED),
        lengths=(tokens_N.shape[0],),
    )


@torch.no_grad()
def _assert_equal_logits(ours, theirs):
    generator = torch.Generator().manual_seed(3)
    tokens_N = torch.randint(0, ours.config.vocab_size, (40,), generator=generator)

    found = ours.logits(_batch(tokens_N))

    torch.testing.assert_close(found, theirs(tokens_N[None]).logits[0], **LOGITS)


@torch.no_grad()
def _greedy(model, tokens_N, *, count):
    for _ in range(count):
        following = model.logits(_batch(tokens_N))[-1].argmax()
        tokens_N = torch.cat([tokens_N, following[None]])
    return tokens_N


@pytest.mark.parametrize(("model_type", "seed"), DRAWN)
def test_transformers_computes_our_logits(scrambled, export, model_type, seed):
    model = scrambled(_draw(model_type, seed))

    theirs = export(model, model_type).load()

    _assert_equal_logits(model, theirs)


@pytest.mark.parametrize(("model_type", "seed"), DRAWN)
def test_we_compute_the_logits_of_transformers(
    scrambled, export, folder_at, tmp_path, model_type, seed
):
    about = export(scrambled(_draw(model_type, seed)), model_type, name="shape").path
    torch.manual_seed(seed)
    theirs = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(about)).eval()
    with torch.no_grad():  # its own initial values are so small that all words are alike
        for parameter in theirs.parameters():
            parameter.add_(torch.randn_like(parameter) / parameter.shape[-1] ** 0.5)
    theirs.save_pretrained(tmp_path / "theirs")

    ours = folder_at(tmp_path / "theirs").read(tmp_path / "ours")

    _assert_equal_logits(ours, theirs)


@pytest.mark.parametrize("model_type", FAMILIES)
def test_a_greedy_continuation_is_the_same(scrambled, export, model_type):
    model = scrambled(_draw(model_type, 1))
    prompt_N = torch.tensor([3, 1, 4, 1, 5])
    theirs = export(model, model_type).load()

    found = theirs.generate(
        prompt_N[None],
        attention_mask=torch.ones(1, 5, dtype=torch.int64),
        do_sample=False,
        max_new_tokens=12,
    )

    assert found[0].tolist() == _greedy(model, prompt_N, count=12).tolist()


@pytest.mark.parametrize(("model_type", "seed"), DRAWN)
def test_our_weights_come_back_to_the_bit(scrambled, export, tmp_path, model_type, seed):
    model = scrambled(_draw(model_type, seed))

    back = export(model, model_type).read(tmp_path / "back")

    assert back.config == model.config
    assert (tmp_path / "back").read_bytes() == weights_to_bytes(model)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("model_type", FAMILIES)
def test_their_weights_come_back_to_the_bit(scrambled, export, tmp_path, model_type, dtype):
    first = export(scrambled(_draw(model_type, 0)), model_type, name="first", dtype=dtype)

    again = export(first.read(tmp_path / "ours"), model_type, name="again", dtype=dtype)

    assert [path.name for path in again.shards] == [path.name for path in first.shards]
    assert [path.read_bytes() for path in again.shards] == [
        path.read_bytes() for path in first.shards
    ]


def test_shards_are_as_large_as_asked_and_load_together(scrambled, export):
    model = scrambled(_draw("qwen3_moe", 2))

    folder = export(model, "qwen3_moe", shard_bytes=5_000)

    sizes = [sum(t.nbytes for t in load_file(path).values()) for path in folder.shards]
    assert len(sizes) >= 3
    assert max(sizes) <= 5_000
    assert folder.shards[0].name == f"model-00001-of-{len(sizes):05d}.safetensors"
    _assert_equal_logits(model, folder.load())


def test_old_files_with_frequencies_of_rotation_are_read(scrambled, export, tmp_path):
    model = scrambled(_draw("olmoe", 0))
    folder = export(model, "olmoe")
    frequencies = {"model.layers.0.self_attn.rotary_emb.inv_freq": torch.ones(2)}
    _change(folder, lambda tensors: tensors.update(frequencies))

    folder.read(tmp_path / "back")

    assert (tmp_path / "back").read_bytes() == weights_to_bytes(model)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.pop("model.norm.weight"), r"'model.norm.weight' .* has shape None"),
        (
            lambda t: t.update({"model.norm.bias": torch.zeros(2)}),
            r"'model.norm.bias' .* has shape \(2,\), its config.json means None",
        ),
        (
            lambda t: t.update({"model.norm.weight": torch.zeros(2)}),
            r"'model.norm.weight' .* has shape \(2,\)",
        ),
        (
            lambda t: t.update({"model.norm.weight": torch.zeros(2, dtype=torch.int8)}),
            r"'model.norm.weight' has type I8, .* convert the checkpoint first",
        ),
    ],
)
def test_a_tensor_that_does_not_fit_is_named(scrambled, export, tmp_path, change, message):
    folder = export(scrambled(_draw("mixtral", 0)), "mixtral")
    _change(folder, change)

    with pytest.raises(ValueError, match=message):
        folder.read(tmp_path / "back")


def _change(folder, change):
    """Change the tensors of the only shard."""
    (path,) = folder.shards
    tensors = load_file(path)
    change(tensors)
    save_file(tensors, path)
