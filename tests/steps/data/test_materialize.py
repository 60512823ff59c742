import datasets
import numpy as np
import pytest

from pipeline.errors import ConfigError, LedgerError, RecipeError
from pipeline.folder import FolderArtifact, FolderInputs, run_body
from pipeline.step import Step
from steps.data import materialize_body, mix_body, pack_body
from steps.data.materialize import MaterializeConfig, materialize
from steps.data.mix import MixConfig, Phase, Tokens
from steps.data.pack import PackConfig, pack
from steps.mixture import open_tokens
from steps.pack_plan import PackPlan
from steps.token_store import TokenStore, hex_ids
from steps.train.loader import Loader
from tests.steps.token_builders import documents_of, write_token_store

LENGTHS = [3, 17, 40, 64, 65, 100, 7, 7, 7, 300, 1, 1, 50, 20, 33]


def packed(root, lengths=LENGTHS, **config):
    tokens = write_token_store(root / "tokens", documents_of(lengths), vocab_size=70_000)
    config = PackConfig(**{"sequence_length": 64, **config})
    plan = run_body(pack_body.run, config, {"tokens": tokens}, root / "plan")
    return {"tokens": tokens, "plan": plan}


def packed_mixture(root):
    store = write_token_store(root / "tokens", documents_of([30, 30]), vocab_size=70_000)
    phases = (Phase(shares={"web": Tokens(40)}), Phase(shares={"web": Tokens(20)}))
    config = MixConfig(sources=("web",), phases=phases)
    inputs = {"sources": [store]}
    inputs["tokens"] = run_body(mix_body.run, config, inputs, root / "mixture")
    plan = run_body(pack_body.run, PackConfig(sequence_length=16), inputs, root / "plan")
    return {**inputs, "plan": plan}


def written(root, inputs, seed=0):
    config = MaterializeConfig(seed=seed)
    return run_body(materialize_body.run, config, inputs, root / "rows")


def loaded(artifact):
    return datasets.load_from_disk(str(artifact.root))


@pytest.mark.parametrize("make", [packed, packed_mixture])
def test_datasets_reads_the_rows_that_training_reads_in_its_order(tmp_path, make):
    inputs = make(tmp_path)
    opened = {"tokens": open_tokens(FolderInputs(inputs)), "plan": PackPlan(inputs["plan"])}
    loader = Loader(**opened, batch_size=1, seed=5)

    rows = loaded(written(tmp_path, inputs, seed=5))

    assert rows.num_rows == loader.num_rows
    for update, row in enumerate(rows):
        batch = loader.batch(update)
        assert row["input_ids"] == batch.tokens_N.tolist()
        assert row["position_ids"] == batch.positions_N.tolist()
        assert tuple(row["seq_lengths"]) == batch.lengths


@pytest.mark.parametrize("make", [packed, packed_mixture])
def test_a_piece_says_where_in_which_document_it_stands(tmp_path, make):
    inputs = make(tmp_path)
    store = TokenStore(FolderArtifact(tmp_path / "tokens"))
    documents = dict(zip(hex_ids(store.doc_ids), range(store.num_documents), strict=True))

    rows = loaded(written(tmp_path, inputs))

    for row in rows:
        expected = [
            store.tokens(documents[name])[start : start + length].tolist()
            for name, start, length in zip(
                row["doc_ids"], row["starts"], row["seq_lengths"], strict=True
            )
        ]
        assert row["input_ids"] == np.concatenate(expected).tolist()


def test_files_together_hold_every_row_once(tmp_path, monkeypatch):
    inputs = packed(tmp_path)
    whole = loaded(written(tmp_path, inputs)).to_dict()
    monkeypatch.setattr(materialize_body, "FILE_TOKENS", 128)
    monkeypatch.setattr(materialize_body, "BATCH_TOKENS", 64)

    artifact = written(tmp_path / "files", inputs)

    assert len(artifact.paths("data-*.arrow")) == 6
    assert loaded(artifact).to_dict() == whole


def test_torch_reads_full_rows_as_a_batch(tmp_path):
    rows = loaded(written(tmp_path, packed(tmp_path, [64] * 4))).with_format("torch")

    assert rows[:]["input_ids"].shape == (4, 64)


def test_a_plan_without_rows_is_an_empty_dataset(tmp_path):
    rows = loaded(written(tmp_path, packed(tmp_path, [])))

    assert rows.num_rows == 0
    assert rows.column_names == ["input_ids", "position_ids", "seq_lengths", "doc_ids", "starts"]


def test_other_rows_have_another_fingerprint(tmp_path):
    inputs = packed(tmp_path)

    one, other = (loaded(written(tmp_path / str(seed), inputs, seed)) for seed in (0, 1))

    assert one._fingerprint != other._fingerprint


def test_tokens_that_are_lost_while_writing_publish_nothing(tmp_path, monkeypatch):
    inputs = packed(tmp_path)
    original = materialize_body._record_batch
    monkeypatch.setattr(materialize_body, "_record_batch", lambda *args: original(*args)[1:])

    with pytest.raises(LedgerError, match="does not balance"):
        written(tmp_path, inputs)


def test_a_plan_for_other_tokens_is_refused(tmp_path):
    one, other = packed(tmp_path / "one"), packed(tmp_path / "other", [5, 6])

    with pytest.raises(ConfigError, match="pack these tokens"):
        written(tmp_path, {"tokens": one["tokens"], "plan": other["plan"]})


def test_the_step_takes_what_pack_took():
    tokens = Step("tokenize", "steps.data.tokenize_body:run")
    plan = pack(tokens)

    assert materialize(plan).inputs == {"tokens": tokens, "plan": plan}


def test_a_step_that_is_no_pack_is_refused():
    with pytest.raises(RecipeError, match="has no input 'tokens'"):
        materialize(Step("mine", "my.steps:run"))
