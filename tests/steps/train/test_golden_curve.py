"""The loss of the first 20 updates: what training computes must not move unnoticed."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from model.initialization import initialize
from model.optimizers.config import MuonH
from model.presets import PRESETS
from model.reproducible import reproducible
from model.transformer import Transformer
from steps.train.loader import NO_TARGET, Batch
from steps.train.pretrain import TrainConfig
from steps.train.trainer import Trainer

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "loss_curve.json"
NATS = 1e-4  # vector units of other widths (AVX2, none, no fused multiply) move it by 1e-6
VOCAB_SIZE, ROW = 64, 64
HERO = PRESETS["tiny-hero"]
WINDOW = HERO.attention.window
assert WINDOW is not None, "every feature is on"
MODEL = replace(
    HERO,
    vocab_size=VOCAB_SIZE,
    d_model=32,
    attention=replace(HERO.attention, head_dim=16, window=replace(WINDOW, size=16)),
    experts=replace(HERO.experts, num_experts=8, d_expert=32, d_shared=32, d_latent=32),
)
TRAIN = TrainConfig(
    num_updates=20,
    batch_size=2,
    learning_rate=0.01,
    schedule="wsd",
    weight_decay=0.0,
    optimizer=MuonH(),
)


def _batch(update):
    """Two rows, each of one long and one short piece, of numbers that follow a rule."""
    places_BT = np.arange(ROW) + np.array([[1], [2]]) * (update + 1)
    tokens_BT = (places_BT * places_BT // 5 + places_BT) % VOCAB_SIZE
    targets_BT = np.full_like(tokens_BT, NO_TARGET)
    lengths = (ROW - 24, 20)  # and 4 places of padding
    for start, length in ((0, lengths[0]), lengths):
        inside = slice(start, start + length - 1)
        targets_BT[:, inside] = tokens_BT[:, start + 1 : start + length]
    return Batch(
        update=update, tokens_BT=tokens_BT, targets_BT=targets_BT, lengths_B=(lengths, lengths)
    )


def _curve():
    with reproducible(threads=1):
        model = Transformer(MODEL)
        initialize(model, seed=0)
        trainer = Trainer(TRAIN, model)
        return [trainer.update(_batch(update)).loss_nats for update in range(TRAIN.num_updates)]


@pytest.fixture(scope="module")
def curve():
    return _curve()


def test_the_loss_curve_is_the_golden_one(curve):
    golden = json.loads(GOLDEN.read_text(encoding="utf-8"))

    # A failing golden means that the same recipe now trains another model. If that is meant, write
    # the new curve into the file, and say in the CHANGELOG what moves and what it does to the loss.
    assert curve == pytest.approx(golden, abs=NATS, rel=0)


def test_the_loss_curve_is_the_same_to_the_bit_a_second_time(curve):
    assert _curve() == curve


def test_the_golden_curve_falls(curve):
    assert curve[-1] < curve[0] - 1
