from dataclasses import replace

import pytest
import torch

from kernels.linear_cross_entropy import IGNORED
from model.batch import TokenBatch
from model.config import AttentionConfig, ExpertsConfig, ModelConfig
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
