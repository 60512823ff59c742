"""Wrong kinds of steps as inputs: refused by the recipe, before anything runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import steps
from model.presets import TINY_MOE
from pipeline.errors import RecipeError
from pipeline.imported import imported
from pipeline.step import Step
from steps.data.compare_packing import compare_packing
from steps.data.decontaminate import decontaminate
from steps.data.deduplicate import deduplicate
from steps.data.download import download
from steps.data.filter_documents import filter_documents
from steps.data.import_tokens import import_tokens
from steps.data.materialize import materialize
from steps.data.mix import Epochs, Phase, mix
from steps.data.pack import pack
from steps.data.sources import InstalledText
from steps.data.split import split
from steps.data.tokenize import tokenize
from steps.data.train_tokenizer import train_tokenizer
from steps.evals.evaluate import evaluate
from steps.kinds import PUBLISHED
from steps.train.huggingface import ExportConfig, export_huggingface, import_huggingface
from steps.train.pretrain import TrainConfig, pretrain

DOCUMENTS = download(InstalledText(max_bytes=1_000))
TOKENIZER = train_tokenizer(DOCUMENTS)
TOKENS = tokenize(DOCUMENTS, TOKENIZER)
PACKED = pack(TOKENS)
TRAIN = TrainConfig(num_updates=1, batch_size=1, learning_rate=0.1)
CHECKPOINT = pretrain(PACKED, model=TINY_MOE, train=TRAIN)
PHASES = [Phase(shares={"a": Epochs(1)})]
EXPORT = ExportConfig(model_type="qwen3_moe")


@pytest.mark.parametrize(
    "declare",
    [
        lambda: compare_packing(TOKENS),
        lambda: decontaminate(DOCUMENTS, TOKENS),
        lambda: decontaminate(TOKENS, DOCUMENTS),
        lambda: deduplicate((DOCUMENTS, TOKENS)),
        lambda: download(DOCUMENTS),  # type: ignore[arg-type]
        lambda: evaluate(CHECKPOINT, TOKENS),
        lambda: evaluate(PACKED, DOCUMENTS),
        lambda: export_huggingface(CHECKPOINT, config=EXPORT, tokenizer=TOKENS),
        lambda: export_huggingface(PACKED, config=EXPORT),
        lambda: filter_documents(TOKENIZER),
        lambda: import_huggingface(CHECKPOINT),
        lambda: import_tokens(TOKENS, vocab_size=9, eos_id=0),
        lambda: materialize(TOKENS),
        lambda: mix({"a": DOCUMENTS}, PHASES),
        lambda: pack(DOCUMENTS),
        lambda: pretrain(PACKED, weights=TOKENS, train=TRAIN),
        lambda: pretrain(TOKENS, model=TINY_MOE, train=TRAIN),
        lambda: split(TOKENS),
        lambda: tokenize(DOCUMENTS, TOKENS),
        lambda: tokenize(TOKENS, TOKENIZER),
        lambda: tokenize(split(DOCUMENTS), TOKENIZER),  # type: ignore[arg-type]
        lambda: train_tokenizer(TOKENS),
    ],
)
def test_a_step_of_the_wrong_kind_is_refused(declare):
    with pytest.raises(RecipeError, match=r" got .*; pass "):
        declare()


def test_the_refusal_names_what_came_and_what_to_pass():
    with pytest.raises(RecipeError) as refused:
        pack(DOCUMENTS)

    assert str(refused.value) == (
        "pack got <Step download> as its tokens, which publishes documents; "
        "pass a step made by steps.data.tokenize.tokenize or steps.data.mix.mix"
    )


@pytest.mark.parametrize(
    "unknown", [imported("0" * 64, name="mine"), Step("mine", "my.steps:run")], ids=lambda s: s.name
)
def test_imports_and_steps_of_others_pass_where_their_kind_is_not_known(unknown):
    tokens = tokenize(unknown, unknown)

    assert tokens.inputs == {"documents": unknown, "tokenizer": unknown}
    assert pack(unknown).inputs == {"tokens": unknown}
    assert evaluate(CHECKPOINT, unknown).inputs["documents"] is unknown


def test_every_step_here_says_what_it_publishes():
    folder = Path(steps.__file__).parent
    named = {
        body
        for path in folder.rglob("*.py")
        for body in re.findall(r'"(steps\.[\w.]+_body:\w+)"', path.read_text(encoding="utf-8"))
    }

    assert named - PUBLISHED.keys() == set()
