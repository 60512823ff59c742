from dataclasses import replace

import pytest
import torch

from kernels.linear_cross_entropy import IGNORED
from model.batch import TokenBatch
from model.config import (
    AttentionConfig,
    DenseLayers,
    ExpertsConfig,
    ModelConfig,
    NormConfig,
    SlidingWindow,
)
from model.initialization import initialize
from model.transformer import Transformer


@pytest.fixture(autouse=True, scope="session")
def one_thread():
    """Two threads take longer to meet than these matrices take to multiply."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture
def config():
    return ModelConfig(
        vocab_size=50,
        d_model=16,
        num_layers=2,
        attention=AttentionConfig(num_heads=2, num_kv_heads=1, head_dim=8),
        experts=ExpertsConfig(num_experts=4, top_k=2, d_expert=8, d_shared=8),
    )


@pytest.fixture
def every_feature():
    """A config with all that Marin's hero has, and a dense layer; layers 1 and 2 are local."""
    window = SlidingWindow(size=3, global_every=4, num_global_kv_heads=1, global_rope_fraction=0.0)
    return ModelConfig(
        vocab_size=50,
        d_model=16,
        num_layers=4,
        attention=AttentionConfig(
            num_heads=4,
            num_kv_heads=2,
            head_dim=8,
            query_multiplier=1.3,
            rope_fraction=0.5,
            window=window,
            exclusive=True,
            head_gates=True,
        ),
        experts=ExpertsConfig(
            num_experts=4,
            top_k=2,
            d_expert=8,
            d_shared=8,
            num_shared=2,
            d_latent=8,
            weights_sum=2.5,
        ),
        dense=DenseLayers(count=1, d_hidden=12),
        norm=NormConfig(gate_rank=4, on_embedding=True),
        convolution_taps=3,
    )


@pytest.fixture
def scrambled(build):
    """A model whose every parameter is random, so that no gate or tap hides at its start."""

    def built(config):
        model = build(config)
        generator = torch.Generator().manual_seed(1)
        with torch.no_grad():
            for parameter in model.parameters():
                noise = torch.randn(parameter.shape, generator=generator)
                parameter.add_(noise / parameter.shape[-2 if parameter.ndim > 1 else -1] ** 0.5)
        return model

    return built


@pytest.fixture
def with_experts(config):
    """A config whose experts differ in the named fields."""
    return lambda **changes: replace(config, experts=replace(config.experts, **changes))


@pytest.fixture
def build():
    """A seeded model."""

    def built(config, seed=0):
        model = Transformer(config)
        initialize(model, seed=seed)
        return model

    return built


@pytest.fixture
def batch_of():
    """A batch of random documents of the given lengths."""

    def built(*lengths, seed=0, vocab_size=50):
        generator = torch.Generator().manual_seed(seed)
        documents = [torch.randint(0, vocab_size, (n,), generator=generator) for n in lengths]
        targets = [torch.cat([d[1:], torch.tensor([IGNORED])]) for d in documents]
        return TokenBatch(
            tokens_N=torch.cat(documents), targets_N=torch.cat(targets), lengths=lengths
        )

    return built
