from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.errors import ConfigError
from pipeline.folder import FolderArtifact, run_body
from steps.data import pack_body
from steps.data.pack import PackConfig
from steps.pack_plan import PackPlan
from steps.token_store import TokenStore
from steps.train.loader import NO_TARGET, Loader
from tests.steps.token_builders import documents_of, write_token_store

LENGTHS = [3, 17, 40, 64, 65, 100, 7, 7, 7, 300, 1, 1, 50, 20, 33]


def packed(tmp_path, lengths=LENGTHS, **config):
    tokens = write_token_store(tmp_path / "tokens", documents_of(lengths), vocab_size=70_000)
    config = PackConfig(**{"sequence_length": 64, **config})
    plan = run_body(pack_body.run, config, {"tokens": tokens}, tmp_path / "plan")
    return {"tokens": TokenStore(FolderArtifact(tokens)), "plan": PackPlan(plan)}


def one_pass(loader):
    batches = [loader.batch(update) for update in range(loader.num_rows // loader.batch_size)]
    assert loader.num_rows % loader.batch_size == 0
    return batches


def test_one_pass_shows_every_token_once(tmp_path):
    artifacts = packed(tmp_path)
    loader = Loader(**artifacts, batch_size=1, seed=0)

    seen = np.concatenate([batch.tokens_N for batch in one_pass(loader)])

    store = artifacts["tokens"]
    expected = np.concatenate([store.tokens(rank) for rank in range(len(LENGTHS))])
    assert sorted(seen.tolist()) == sorted(expected.tolist())


@pytest.mark.parametrize("cut", ["long", "any"])
def test_every_token_but_the_first_of_its_document_is_predicted_once(tmp_path, cut):
    artifacts = packed(tmp_path, cut=cut)
    loader = Loader(**artifacts, batch_size=1, seed=0)

    pairs = [
        pair
        for batch in one_pass(loader)
        for pair in zip(batch.tokens_N.tolist(), batch.targets_N.tolist(), strict=True)
        if pair[1] != NO_TARGET
    ]

    store = artifacts["tokens"]
    documents = [store.tokens(rank).tolist() for rank in range(len(LENGTHS))]
    expected = [pair for ids in documents for pair in pairwise(ids)]
    assert sorted(pairs) == sorted(expected)


def test_padding_and_ends_of_text_have_no_target(tmp_path):
    batch = Loader(**packed(tmp_path, [10, 20]), batch_size=1, seed=0).batch(0)

    ends = (batch.tokens_BT == 0) & batch.is_real_BT
    assert ends.sum() == 2
    assert (batch.targets_BT[ends] == NO_TARGET).all()
    assert (batch.targets_BT[~batch.is_real_BT] == NO_TARGET).all()


def test_positions_start_anew_with_every_piece(tmp_path):
    batch = Loader(**packed(tmp_path, [3, 2]), batch_size=1, seed=0).batch(0)

    assert batch.lengths == (3, 2)
    assert batch.positions_N.tolist() == [0, 1, 2, 0, 1]


@settings(max_examples=30)
@given(update=st.integers(0, 10**9), seed=st.integers(0, 2**70))
def test_ranks_share_a_batch_in_any_world_size(tmp_path_factory, update, seed):
    artifacts = packed(tmp_path_factory.mktemp("ranks"))
    loader = Loader(**artifacts, batch_size=12, seed=seed)

    whole = loader.batch(update)

    for world_size in (2, 3, 12):
        parts = [loader.batch(update, rank=r, world_size=world_size) for r in range(world_size)]
        assert np.array_equal(np.concatenate([p.tokens_BT for p in parts]), whole.tokens_BT)
        assert np.array_equal(np.concatenate([p.targets_BT for p in parts]), whole.targets_BT)
        assert sum((p.lengths_B for p in parts), ()) == whole.lengths_B


def test_a_new_loader_goes_on_where_the_old_one_was(tmp_path):
    artifacts = packed(tmp_path)
    old = Loader(**artifacts, batch_size=3, seed=5)
    for update in range(7):
        old.batch(update)

    resumed = Loader(**artifacts, batch_size=3, seed=5).batch(7)

    assert np.array_equal(resumed.tokens_BT, old.batch(7).tokens_BT)


def test_each_pass_has_an_order_of_its_own_and_batches_may_span_two(tmp_path):
    loader = Loader(**packed(tmp_path), batch_size=5, seed=0)
    count = loader.num_rows

    rows = np.concatenate([loader.rows(update) for update in range(count)])

    passes = rows.reshape(5, count).tolist()
    assert all(sorted(order) == list(range(count)) for order in passes)
    assert len({tuple(order) for order in passes}) == 5


def test_the_order_does_not_depend_on_the_batch_size(tmp_path):
    artifacts = packed(tmp_path)
    small = Loader(**artifacts, batch_size=2, seed=0)
    large = Loader(**artifacts, batch_size=6, seed=0)

    rows = np.concatenate([small.rows(update) for update in (3, 4, 5)])

    assert rows.tolist() == large.rows(1).tolist()


def test_a_batch_may_be_larger_than_a_pass(tmp_path):
    loader = Loader(**packed(tmp_path, [5]), batch_size=4, seed=0)

    assert loader.rows(0).tolist() == [0, 0, 0, 0]


def test_a_plan_for_other_documents_is_refused(tmp_path):
    one, other = packed(tmp_path / "one"), packed(tmp_path / "other", [5, 6])

    with pytest.raises(ConfigError, match="pack this token store"):
        Loader(tokens=one["tokens"], plan=other["plan"], batch_size=1, seed=0)


def test_a_plan_without_rows_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="no tokens to train on"):
        Loader(**packed(tmp_path, []), batch_size=1, seed=0)


@pytest.mark.parametrize(
    "wrong", [{"update": -1}, {"rank": 4, "world_size": 4}, {"rank": 0, "world_size": 3}]
)
def test_a_slice_that_does_not_exist_is_refused(tmp_path, wrong):
    loader = Loader(**packed(tmp_path), batch_size=4, seed=0)

    with pytest.raises(ConfigError, match="batch_size=4"):
        loader.batch(**{"update": 0, **wrong})


def test_the_first_rows_of_a_run_are_the_golden_ones(tmp_path):
    loader = Loader(**packed(tmp_path), batch_size=6, seed=7)

    # A failing golden means that resumed runs would go on with other data than they had: say so
    # in the changelog, under what moves digests.
    assert loader.rows(0).tolist() == [1, 4, 2, 8, 6, 9]
