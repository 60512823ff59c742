from collections import Counter
from itertools import chain, pairwise

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.errors import ConfigError, LedgerError
from pipeline.folder import FolderInputs, run_body
from steps.data import mix_body, pack_body
from steps.data.mix import Epochs, MixConfig, Phase, Tokens, Weight
from steps.data.pack import PackConfig
from steps.mixture import open_tokens
from steps.pack_plan import PackPlan
from steps.train.loader import NO_TARGET, Loader
from tests.steps.token_builders import documents_of, write_token_store

TWO_TO_ONE = Phase(shares={"code": Weight(1), "web": Weight(2)}, tokens=100)
LENGTHS = {"code": [30, 7, 12, 51, 1, 9], "web": [80, 3, 40, 22, 22, 5, 64]}

counts = st.integers(1, 40)
shares = st.one_of(
    st.builds(Tokens, counts), st.builds(Epochs, st.integers(1, 2)), st.builds(Weight, counts)
)


@st.composite
def mixtures(draw):
    """The lengths of the documents of two sources, and up to three phases over them."""
    lengths = draw(st.lists(st.integers(1, 30), min_size=1, max_size=12))
    split = draw(st.integers(0, len(lengths)))
    phases = []
    for _ in range(draw(st.integers(1, 3))):
        taken = draw(st.dictionaries(st.sampled_from("ab"), shares, min_size=1))
        exact = sum(lengths) * 4 + 80
        has_weights = any(isinstance(share, Weight) for share in taken.values())
        size = exact + draw(st.integers(0, 99)) if has_weights else None
        phases.append(Phase(shares=taken, tokens=size))
    phases.append(Phase(shares={"a": Tokens(1), "b": Tokens(1)}))
    return {"a": lengths[:split] or [3], "b": lengths[split:] or [2]}, tuple(phases)


def write_stores(root, lengths=None, num_shards=1):
    """A token store per source; no token stands in two of them, but for the ends of texts."""
    stores, first = {}, 1
    for name, of_source in (lengths or LENGTHS).items():
        rows = documents_of(of_source, first=first, prefix=name)
        first += sum(of_source)
        shards = [rows[number::num_shards] for number in range(num_shards)]
        stores[name] = write_token_store(root / name, *shards, vocab_size=70_000)
    return stores


def mixed(root, stores, *phases, **options):
    names = tuple(sorted(stores))
    config = MixConfig(sources=names, phases=phases, **{"max_epochs": 1_000, **options})
    inputs = {"sources": [stores[name] for name in names]}
    return run_body(mix_body.run, config, inputs, root / "mixture")


def opened(stores, mixture):
    return open_tokens(token_inputs(stores, mixture))


def token_inputs(stores, mixture):
    roles = {"tokens": mixture, "sources": [stores[name] for name in sorted(stores)]}
    return FolderInputs(roles)


def packed(root, stores, mixture, **config):
    config = PackConfig(**{"sequence_length": 16, **config})
    inputs = token_inputs(stores, mixture).roles
    return run_body(pack_body.run, config, inputs, root / "plan")


def drawn_tokens(tokens, phase, source):
    """What a phase took of a source, in order."""
    first, end = tokens.phase_bounds[phase : phase + 2]
    mine = [rank for rank in range(first, end) if tokens.source[rank] == source]
    return list(chain.from_iterable(tokens.tokens(rank).tolist() for rank in mine))


def one_pass(loader):
    return [loader.batch(update) for update in range(loader.num_rows)]


@settings(max_examples=40)
@given(mixture=mixtures(), seed=st.integers(0, 2**70))
def test_a_mixture_takes_exactly_what_its_phases_declare(tmp_path_factory, mixture, seed):
    root = tmp_path_factory.mktemp("budgets")
    lengths, phases = mixture
    stores = write_stores(root, lengths)

    tokens = opened(stores, mixed(root, stores, *phases, seed=seed))

    sizes = {name: sum(of_source) for name, of_source in lengths.items()}
    for index, phase in enumerate(phases):
        budget = mix_body.budgets(phase, sizes)
        for source, name in enumerate("ab"):
            assert len(drawn_tokens(tokens, index, source)) == budget.get(name, 0)
        assert phase.tokens in {None, sum(budget.values())}


@settings(max_examples=40)
@given(mixture=mixtures(), seed=st.integers(0, 2**70))
def test_no_token_is_lost_or_doubled_within_an_epoch(tmp_path_factory, mixture, seed):
    root = tmp_path_factory.mktemp("epochs")
    lengths, phases = mixture
    stores = write_stores(root, lengths)

    tokens = opened(stores, mixed(root, stores, *phases, seed=seed))

    for source, store in enumerate(tokens.stores):
        mine = tokens.source == source
        for epoch in range(int(tokens.epoch[mine].max()) + 1):
            places = [
                (int(document), int(start) + at)
                for document, start, length in zip(
                    *(column[mine & (tokens.epoch == epoch)] for column in columns_of(tokens)),
                    strict=True,
                )
                for at in range(length)
            ]
            assert len(set(places)) == len(places)
            is_complete = epoch < tokens.epoch[mine].max()
            assert not is_complete or len(places) == store.facts["tokens"]


def columns_of(tokens):
    return tokens.document, tokens.starts(np.arange(tokens.num_documents)), tokens.lengths


@settings(max_examples=15)
@given(mixture=mixtures(), num_shards=st.integers(2, 5), seed=st.integers(0, 2**70))
def test_a_mixture_and_its_plan_do_not_depend_on_shards(
    tmp_path_factory, mixture, num_shards, seed
):
    lengths, phases = mixture
    digests = []
    for shards in (1, num_shards):
        root = tmp_path_factory.mktemp("sharding")
        stores = write_stores(root, lengths, shards)
        artifact = mixed(root, stores, *phases, seed=seed)

        plan = packed(root, stores, artifact, seed=seed)

        digests.append((artifact.content_digest, plan.content_digest))
    assert digests[0] == digests[1]


def test_a_phase_goes_on_in_the_document_where_the_phase_before_it_stopped(tmp_path):
    stores = write_stores(tmp_path, {"web": [40, 40, 40]})
    three = [Phase(shares={"web": Tokens(count)}) for count in (50, 1, 69)]

    tokens = opened(stores, mixed(tmp_path, stores, *three))

    parts = [drawn_tokens(tokens, phase, 0) for phase in range(3)]
    whole = chain.from_iterable(tokens.stores[0].tokens(rank).tolist() for rank in range(3))
    assert [len(part) for part in parts] == [50, 1, 69]
    assert sorted(chain.from_iterable(parts)) == sorted(whole)
    assert parts[1][0] == parts[0][-1] + 1
    assert parts[2][0] == parts[1][0] + 1


def test_each_epoch_has_an_order_of_its_own(tmp_path):
    stores = write_stores(tmp_path, {"web": [2] * 40})
    tokens = opened(stores, mixed(tmp_path, stores, Phase(shares={"web": Epochs(3)})))

    orders = [tuple(tokens.document[tokens.epoch == epoch]) for epoch in range(3)]

    assert len(set(orders)) == 3
    assert all(sorted(order) == list(range(40)) for order in orders)


def test_another_seed_draws_other_documents(tmp_path):
    stores = write_stores(tmp_path, {"web": [2] * 40})
    half = Phase(shares={"web": Tokens(40)})

    one = opened(stores, mixed(tmp_path / "one", stores, half, seed=1))
    other = opened(stores, mixed(tmp_path / "other", stores, half, seed=2))

    assert set(one.document) != set(other.document)


def test_the_loader_shows_every_phase_whole_before_the_next(tmp_path):
    stores = write_stores(tmp_path)
    second = Phase(shares={"code": Tokens(40)})
    mixture = mixed(tmp_path, stores, TWO_TO_ONE, second)
    tokens = opened(stores, mixture)
    loader = Loader(
        tokens=tokens,
        plan=PackPlan(packed(tmp_path, stores, mixture)),
        batch_size=1,
        seed=3,
    )

    seen = [batch.tokens_N.tolist() for batch in one_pass(loader)]

    rows = np.diff(loader.plan.phase_bounds).tolist()
    assert len(rows) == 2
    for phase, of_phase in enumerate((seen[: rows[0]], seen[rows[0] :])):
        expected = drawn_tokens(tokens, phase, 0) + drawn_tokens(tokens, phase, 1)
        assert Counter(chain.from_iterable(of_phase)) == Counter(expected)


def test_a_document_cut_between_phases_loses_no_prediction(tmp_path):
    stores = write_stores(tmp_path, {"web": [30, 30]})
    mixture = mixed(tmp_path, stores, *[Phase(shares={"web": Tokens(20)}) for _ in range(3)])
    tokens = opened(stores, mixture)
    plan = PackPlan(packed(tmp_path, stores, mixture))
    loader = Loader(tokens=tokens, plan=plan, batch_size=1, seed=0)

    pairs = [
        pair
        for batch in one_pass(loader)
        for pair in zip(batch.tokens_N.tolist(), batch.targets_N.tolist(), strict=True)
        if pair[1] != NO_TARGET
    ]

    documents = [tokens.stores[0].tokens(rank).tolist() for rank in range(2)]
    assert sorted(pairs) == sorted(pair for ids in documents for pair in pairwise(ids))


def test_copies_of_a_document_from_two_epochs_are_spread_over_the_rows(tmp_path):
    stores = write_stores(tmp_path, {"web": [4] * 64})
    mixture = mixed(tmp_path, stores, Phase(shares={"web": Epochs(2)}))

    plan = PackPlan(packed(tmp_path, stores, mixture, sequence_length=8))

    documents = opened(stores, mixture).document[plan.document].reshape(-1, 2)
    assert (documents[:, 0] == documents[:, 1]).sum() < 8


def test_the_ledger_says_what_was_read_again_and_what_was_not_drawn(tmp_path):
    stores = write_stores(tmp_path, {"code": [10, 10], "web": [10, 10, 10]})
    phase = Phase(shares={"code": Tokens(30), "web": Tokens(15)})

    ledger = mixed(tmp_path, stores, phase).read_json("ledger.json")

    assert ledger["in"] == {"documents": 5, "tokens": 50}
    assert ledger["added"] == {"code: read again": {"documents": 1, "tokens": 10}}
    assert ledger["removed"] == {"web: not drawn": {"documents": 1, "tokens": 15}}
    assert ledger["out"] == {"documents": 5, "tokens": 45}


def test_the_summary_sets_what_was_drawn_beside_what_was_declared(tmp_path):
    stores = write_stores(tmp_path)

    summary = mixed(tmp_path, stores, TWO_TO_ONE).read_json("summary.json")

    declared, sources = summary["tables"]
    columns = ["phase", "source", "share", "declared", "drawn", "of phase"]
    assert [row[:6] for row in declared["rows"]] == [
        ["1", "code", "weight 1", "33", "33", "33.00 %"],
        ["1", "web", "weight 2", "67", "67", "67.00 %"],
    ]
    assert declared["columns"][:6] == columns
    assert sources["rows"][0] == ["code", "110", "33", "0.300", "77"]


def test_a_draw_that_is_lost_publishes_nothing(tmp_path, monkeypatch):
    original = mix_body._draws

    def lose_one(*args, **options):
        yield from (table.slice(1) for table in original(*args, **options))

    monkeypatch.setattr(mix_body, "_draws", lose_one)

    with pytest.raises(LedgerError, match="does not balance"):
        mixed(tmp_path, write_stores(tmp_path), TWO_TO_ONE)


def test_a_file_of_draws_lists_documents_of_the_stores(tmp_path):
    stores = write_stores(tmp_path, {"web": [5]})

    artifact = mixed(tmp_path, stores, Phase(shares={"web": Tokens(4)}))

    assert pq.read_table(artifact.local("draws-00000.parquet")).to_pylist() == [
        {"source": 0, "epoch": 0, "document": 0, "start": 0, "length": 4}
    ]


def test_the_plan_of_a_mixture_reports_its_phases(tmp_path):
    stores = write_stores(tmp_path)
    mixture = mixed(tmp_path, stores, TWO_TO_ONE, Phase(shares={"code": Tokens(16)}))

    summary = packed(tmp_path, stores, mixture).read_json("summary.json")

    assert [row[0::2] for row in summary["tables"][0]["rows"]] == [["1", "100"], ["2", "16"]]


def test_a_source_is_read_again_only_if_the_recipe_says_so(tmp_path):
    stores = write_stores(tmp_path, {"web": [10]})

    with pytest.raises(
        ConfigError, match=r"11 tokens of source 'web', which holds 10.*max_epochs=1"
    ):
        mixed(tmp_path, stores, Phase(shares={"web": Tokens(11)}), max_epochs=1)


def test_an_empty_source_is_refused_where_tokens_are_wanted_of_it(tmp_path):
    stores = write_stores(tmp_path, {"web": []})

    with pytest.raises(ConfigError, match="'web', which holds 0"):
        mixed(tmp_path, stores, Phase(shares={"web": Tokens(1)}))


def test_every_epoch_of_an_empty_source_is_empty(tmp_path):
    stores = write_stores(tmp_path, {"code": [4], "web": []})

    artifact = mixed(tmp_path, stores, Phase(shares={"code": Tokens(3), "web": Epochs(1)}))

    assert opened(stores, artifact).lengths.tolist() == [3]


def test_exact_shares_above_the_size_of_their_phase_are_refused(tmp_path):
    phase = Phase(shares={"code": Tokens(9), "web": Weight(1)}, tokens=8)

    with pytest.raises(ConfigError, match=r"tokens=8 of a phase are fewer than the 9"):
        mixed(tmp_path, write_stores(tmp_path), phase)


@pytest.mark.parametrize("options", [{"vocab_size": 300}, {"tokenizer": "b" * 64}])
def test_tokens_of_different_tokenizers_are_not_mixed(tmp_path, options):
    stores = {
        "code": write_token_store(tmp_path / "code", documents_of([5]), tokenizer="a" * 64),
        "web": write_token_store(
            tmp_path / "web", documents_of([5]), **{"tokenizer": "a" * 64, **options}
        ),
    }
    fact = next(iter(options))
    other = {"vocab_size": 200}.get(fact)
    if other:
        stores["code"] = write_token_store(tmp_path / "other", documents_of([5]), vocab_size=other)

    with pytest.raises(ConfigError, match=f"different tokens, {fact} by source"):
        mixed(tmp_path, stores, Phase(shares={"code": Tokens(1), "web": Tokens(1)}))


def test_a_mixture_is_opened_with_its_own_stores_only(tmp_path):
    stores = write_stores(tmp_path)
    artifact = mixed(tmp_path, stores, TWO_TO_ONE)

    with pytest.raises(ConfigError, match="the stores that it was made of"):
        opened({"a": stores["web"], "b": stores["code"]}, artifact)


def test_only_a_weight_that_is_no_whole_number_is_to_be_scaled_up():
    with pytest.raises(ConfigError, match=r"Weight=0\.3 .* \(write 0\.3 and 0\.7 as 3 and 7\)"):
        Weight(0.3)
    with pytest.raises(ConfigError, match=r"Tokens=0\.5 must be a whole number, at least 1$"):
        Tokens(0.5)
