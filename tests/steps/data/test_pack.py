import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.errors import ConfigError, CorruptError, LedgerError
from pipeline.folder import FolderArtifact, run_body
from pipeline.step import Step
from steps.data import pack_body
from steps.data.pack import PackConfig, pack
from steps.pack_plan import PackPlan
from steps.token_store import TokenStore
from tests.steps.token_builders import documents_of, write_token_store

LENGTHS = [3, 17, 40, 64, 65, 100, 7, 7, 7, 300, 1, 1, 50, 20, 33]


def plan(tmp_path, *shards, name="plan", **config):
    tokens = write_token_store(tmp_path / f"{name}-tokens", *shards)
    return plan_of(tokens, tmp_path / name, **config)


def plan_of(tokens, into, **config):
    config = PackConfig(**{"sequence_length": 64, **config})
    return run_body(pack_body.run, config, {"tokens": tokens}, into)


def held_tokens(store, opened):
    """What the pieces of a plan hold, put together by document."""
    held = {rank: [] for rank in range(store.num_documents)}
    for at in np.lexsort((opened.start, opened.document)):
        start, end = opened.start[at], opened.start[at] + opened.length[at]
        held[opened.document[at]] += store.tokens(opened.document[at])[start:end].tolist()
    return held


@pytest.mark.parametrize("cut", ["long", "any"])
def test_every_token_of_every_document_is_packed_once(tmp_path, cut):
    tokens = write_token_store(tmp_path / "tokens", documents_of(LENGTHS))
    store = TokenStore(FolderArtifact(tokens))

    opened = PackPlan(plan_of(tokens, tmp_path / "plan", cut=cut))

    documents = range(store.num_documents)
    assert held_tokens(store, opened) == {rank: store.tokens(rank).tolist() for rank in documents}


@settings(max_examples=25)
@given(
    lengths=st.lists(st.integers(0, 300), max_size=40),
    sharding=st.integers(1, 5),
    order=st.randoms(use_true_random=False),
    seed=st.integers(0, 2**64),
)
def test_a_plan_does_not_depend_on_shards_or_order(
    tmp_path_factory, lengths, sharding, order, seed
):
    tmp_path = tmp_path_factory.mktemp("sharding")
    documents = documents_of(lengths)
    shuffled = order.sample(documents, len(documents))
    shards = [shuffled[number::sharding] for number in range(sharding)]

    one = plan(tmp_path, documents, name="one", seed=seed)
    other = plan(tmp_path, *shards, name="other", seed=seed)

    assert one.content_digest == other.content_digest


def test_groups_together_hold_every_document(tmp_path, monkeypatch):
    monkeypatch.setattr(pack_body, "GROUP_DOCUMENTS", 4)

    artifact = plan(tmp_path, documents_of(LENGTHS))

    assert artifact.paths("plan-*") == [f"plan-0000{number}.parquet" for number in range(4)]
    assert PackPlan(artifact).length.sum() == sum(LENGTHS)


def test_another_seed_makes_another_plan(tmp_path):
    one = plan(tmp_path, documents_of([9] * 50), name="one", seed=1)
    other = plan(tmp_path, documents_of([9] * 50), name="other", seed=2)

    assert PackPlan(one).document.tolist() != PackPlan(other).document.tolist()


def test_the_kernel_and_the_reference_publish_the_same_bytes(tmp_path, monkeypatch):
    small = plan(tmp_path, documents_of(LENGTHS), name="small")
    monkeypatch.setattr(pack_body, "_SMALL_GROUP", 0)

    large = plan(tmp_path, documents_of(LENGTHS), name="large")

    assert small.content_digest == large.content_digest


def test_only_documents_longer_than_a_row_are_cut(tmp_path):
    facts = plan(tmp_path, documents_of(LENGTHS)).read_json("plan.json")

    assert facts["cut_documents"] == facts["long_documents"] == 3


def test_cutting_any_document_fills_rows_that_nothing_long_could_fill(tmp_path):
    documents = documents_of([48] * 40)

    long = plan(tmp_path, documents, name="long").read_json("plan.json")
    any_ = plan(tmp_path, documents, name="any", cut="any").read_json("plan.json")

    assert (long["rows"], long["cut_documents"]) == (40, 0)
    assert (any_["rows"], any_["cut_documents"]) == (30, 10)


@pytest.mark.parametrize(
    ("lengths", "rows"),
    [
        ([640] * 3, 30),  # all longer than the row
        ([16] * 12, 3),  # all of one length
        ([1] * 130, 3),  # one token each
        ([64], 1),
        ([65], 2),
        ([], 0),
    ],
)
def test_documents_take_as_few_rows_as_they_can(tmp_path, lengths, rows):
    artifact = plan(tmp_path, documents_of(lengths))

    assert artifact.read_json("plan.json")["rows"] == PackPlan(artifact).num_rows == rows


def test_a_document_without_tokens_is_removed_by_name(tmp_path):
    artifact = plan(tmp_path, documents_of([5, 0, 6]))

    ledger = artifact.read_json("ledger.json")
    assert ledger["removed"] == {"without a token": {"documents": 1}}
    assert ledger["out"] == {"documents": 2, "tokens": 11}


def test_equal_documents_are_packed_as_often_as_they_occur(tmp_path):
    documents = documents_of([30])

    opened = PackPlan(plan(tmp_path, documents, documents))

    assert opened.document.tolist() == [0, 1]


def test_a_plan_file_lists_the_pieces_of_each_row_in_order(tmp_path):
    artifact = plan(tmp_path, documents_of([20] * 6))

    table = pq.read_table(artifact.local("plan-00000.parquet"))

    assert table.column("row").to_pylist() == [0, 0, 0, 1, 1, 1]
    assert table.column("position").to_pylist() == [0, 1, 2, 0, 1, 2]


def test_a_packer_that_loses_here_and_doubles_there_publishes_nothing(tmp_path, monkeypatch):
    original = pack_body.reference.plan_rows

    def shift_a_piece(*args, **options):
        pieces = original(*args, **options)
        pieces.start[0] += 1
        return pieces

    monkeypatch.setattr(pack_body.reference, "plan_rows", shift_a_piece)

    with pytest.raises(LedgerError, match="exactly once"):
        plan(tmp_path, documents_of([20] * 6))


def test_a_plan_that_lost_a_file_is_refused(tmp_path):
    artifact = plan(tmp_path, documents_of(LENGTHS))
    other = plan(tmp_path, documents_of(LENGTHS[:5]), name="other")
    (artifact.root / "plan-00000.parquet").write_bytes(other.read_bytes("plan-00000.parquet"))

    with pytest.raises(CorruptError, match="seaglass rerun RECIPE pack"):
        PackPlan(artifact)


def test_a_store_that_lost_documents_is_refused(tmp_path):
    tokens = write_token_store(tmp_path / "tokens", documents_of(LENGTHS))
    other = write_token_store(tmp_path / "other", documents_of(LENGTHS[:5]))
    (tokens / "tokens-00000.arrow").write_bytes((other / "tokens-00000.arrow").read_bytes())

    with pytest.raises(CorruptError, match=r"5 documents, tokens\.json says 15"):
        plan_of(tokens, tmp_path / "plan")


def test_the_step_is_labelled_by_its_sequence_length():
    tokens = Step("tokenize", "steps.data.tokenize_body:run")

    assert pack(tokens, sequence_length=65_536).title == "pack-65536"
    assert pack(tokens, cut="any").title == "pack-4096-any"


@pytest.mark.parametrize(
    ("field", "value"), [("sequence_length", 1), ("sequence_length", 1 << 25), ("cut", "some")]
)
def test_a_config_out_of_bounds_is_refused_with_its_value(field, value):
    with pytest.raises(ConfigError, match=f"{field}={value!r}"):
        PackConfig(**{field: value})
