import pytest
import torch

from model.optimizers.build import build
from model.optimizers.config import AdamH, AdamW, Muon, MuonH, Peak


@pytest.fixture
def optimizer_of():
    """An optimizer for one parameter, which stands in the model as a matrix."""

    def made(parameter, config, **peak):
        module = torch.nn.Module()
        module.register_parameter("up", parameter)
        return build(module, config, Peak(**{"learning_rate": 0.01, **peak}))

    return made


@pytest.fixture(params=[AdamW(), Muon(), AdamH(), MuonH()], ids=lambda c: type(c).__name__)
def any_config(request):
    return request.param
