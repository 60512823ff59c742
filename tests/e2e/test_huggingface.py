"""A checkpoint of transformers through the engine: imported, made ours, and exported again."""

import pytest
import torch
from transformers import AutoModelForCausalLM, OlmoeConfig

from pipeline.asking.artifacts import artifact_of
from pipeline.digests import RememberedDigests
from pipeline.keeping.exporting import export_files
from pipeline.keeping.importing import Wanted, import_files
from pipeline.planning.plan import make_plan
from pipeline.recipes import load_recipe
from pipeline.running.board import Board
from pipeline.running.launch import make_executor
from pipeline.running.run import Run
from pipeline.store.store import open_store

RECIPE = '''"""There and back."""

from pipeline.imported import imported
from steps.train.huggingface import ExportConfig, export_huggingface, import_huggingface


def dag(content: str):
    """The same checkpoint, twice translated."""
    ours = import_huggingface(imported(content, name="theirs"))
    return {"again": export_huggingface(ours, config=ExportConfig(model_type="olmoe"))}
'''

pytestmark = pytest.mark.slow


@pytest.fixture
def theirs(tmp_path):
    """A folder as transformers writes it."""
    torch.manual_seed(0)
    config = OlmoeConfig(
        vocab_size=50,
        hidden_size=16,
        intermediate_size=8,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_experts=4,
        num_experts_per_tok=2,
        pad_token_id=None,
        eos_token_id=None,
    )
    AutoModelForCausalLM.from_config(config).save_pretrained(tmp_path / "theirs")
    return tmp_path / "theirs"


def test_a_checkpoint_goes_through_a_recipe_and_comes_out_the_same(theirs, tmp_path):
    store, digests = open_store(str(tmp_path / "store")), RememberedDigests(tmp_path / "digests")
    content = import_files(store, Wanted(name="theirs", place=str(theirs))).record.content_digest
    (tmp_path / "there_and_back.py").write_text(RECIPE, encoding="utf-8")
    recipe = load_recipe(str(tmp_path / "there_and_back.py"), [f"content={content}"])
    found = make_plan(recipe, store, digests)

    result = Run(found, Board(found.dag.nodes)).execute(
        lambda: make_executor("inline", found.codebase)
    )

    assert not result.failures
    export_files(artifact_of(store, result.own["export_huggingface"], digests), tmp_path / "again")
    first, again = (
        AutoModelForCausalLM.from_pretrained(folder).state_dict()
        for folder in (theirs, tmp_path / "again")
    )
    assert first.keys() == again.keys()
    assert all(torch.equal(first[name], again[name]) for name in first)
