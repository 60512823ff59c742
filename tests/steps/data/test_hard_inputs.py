"""Inputs that break packers and tokenizers, through every step from texts to batches."""

import json
from collections import Counter
from itertools import chain, pairwise

import datasets
import pytest
from tokenizers import Tokenizer, pre_tokenizers

from pipeline.errors import ConfigError
from pipeline.folder import FolderInputs, run_body
from steps.data import compare_packing_body, materialize_body, pack_body, tokenize_body
from steps.data.materialize import MaterializeConfig
from steps.data.pack import PackConfig
from steps.data.tokenize import TokenizeConfig
from steps.mixture import open_tokens
from steps.pack_plan import PackPlan
from steps.train.loader import NO_TARGET, Loader
from tests.steps.token_builders import (
    documents_of,
    write_byte_tokenizer,
    write_documents,
    write_token_store,
)

ROW = 64
LENGTHS = {
    "all longer than the row": [ROW + 1, 3 * ROW, 5 * ROW + 7, 2 * ROW - 1, 129],
    "all of one length": [24] * 21,
    "all as long as the row": [ROW] * 5,
    "one token each": [1] * 131,
    "one document": [7],
    "one long among many short": [40 * ROW] + [3] * 50,
}
TEXTS = (
    *("<|endoftext|>", "a<|endoftext|>b", "<s></s>[PAD]<unk>", "<|endof", "text|>"),
    *(" ", "\n", "\t\t", "\r\n\r\n", "\u00a0\u2003\u200b\ufeff", "\x85\u2028\u2029"),
    *("\x00", "\x01\x08\x1b[31m\x7f", "nul\x00in\x00side", "\ufffe\ufffd", "\u202etfel"),
    *("0", "-1/0", "1e1000", "0x7fffffff", "\u0661\u0662\u0663", "\u00bd\u2167", "NaN", "1_0"),
    *("'; DROP TABLE t; --", "<script>alert(1)</script>", "%s%n$(ls)`id`", "../../etc", "{0}"),
    *("\u7530\u4e2d", "\u0e01\u0e33", "\u05d0\u0628", "\uff21\uff22", "Z\u0351a\u0317"),
    *("\U0001f468\u200d\U0001f469\u200d\U0001f467", "\U0001f1e9\U0001f1ea", "\u2764\ufe0f"),
    *("\u0130\u0131", "\u1e9e\u00df", "\u017f\u212a", "\u01c5", "\ufb03", "e\u0301\u00e9"),
    *("a" * 5_000, "\u00e9" * 3_000, " " * 4_000),
)  # fmt: skip
VOCABULARIES = {
    "small": {},
    "of 70,000": {"unused": 70_000},
    "for Hugging Face alone": {
        "changes": lambda tokenizer: setattr(
            tokenizer,
            "pre_tokenizer",
            pre_tokenizers.Sequence(
                [pre_tokenizers.UnicodeScripts(), pre_tokenizers.ByteLevel(add_prefix_space=False)]
            ),
        )
    },
}


def plan_of(root, tokens, **config):
    config = PackConfig(**{"sequence_length": ROW, **config})
    return run_body(pack_body.run, config, {"tokens": tokens}, root / "plan")


def batches_of(tokens, plan):
    opened = open_tokens(FolderInputs({"tokens": tokens}))
    loader = Loader(tokens=opened, plan=PackPlan(plan), batch_size=1, seed=0)
    return opened, [loader.batch(update) for update in range(loader.num_rows)]


def flat(lists):
    return list(chain.from_iterable(lists))


@pytest.mark.parametrize("cut", ["long", "any"])
@pytest.mark.parametrize("case", LENGTHS)
def test_every_token_is_read_once_and_all_but_the_first_predicted_once(tmp_path, case, cut):
    tokens = write_token_store(tmp_path / "t", documents_of(LENGTHS[case]), vocab_size=70_000)

    store, batches = batches_of(tokens, plan_of(tmp_path, tokens, cut=cut))

    documents = [store.tokens(rank).tolist() for rank in range(store.num_documents)]
    assert Counter(flat(b.tokens_N.tolist() for b in batches)) == Counter(flat(documents))
    pairs = flat(zip(b.tokens_N.tolist(), b.targets_N.tolist(), strict=True) for b in batches)
    predicted = Counter(pair for pair in pairs if pair[1] != NO_TARGET)
    assert predicted == Counter(flat(pairwise(ids) for ids in documents))


@pytest.mark.parametrize("case", LENGTHS)
def test_every_row_is_materialized_as_it_is_read(tmp_path, case):
    tokens = write_token_store(tmp_path / "t", documents_of(LENGTHS[case]), vocab_size=70_000)
    plan = plan_of(tmp_path, tokens)

    inputs = {"tokens": tokens, "plan": plan}
    rows = run_body(materialize_body.run, MaterializeConfig(), inputs, tmp_path / "rows")

    read = [batch.tokens_N.tolist() for batch in batches_of(tokens, plan)[1]]
    assert datasets.load_from_disk(str(rows.root))[:]["input_ids"] == read


@pytest.mark.parametrize("case", LENGTHS)
def test_only_documents_longer_than_a_row_are_cut(tmp_path, case):
    tokens = write_token_store(tmp_path / "t", documents_of(LENGTHS[case]), vocab_size=70_000)
    plans = [plan_of(tmp_path / str(n), tokens, sequence_length=n).root for n in (ROW, 256, 1_024)]

    folder = run_body(compare_packing_body.run, None, {"plans": plans}, tmp_path / "report")

    for line in folder.read_json("report.json"):
        longer = sum(length > line["sequence_length"] for length in LENGTHS[case])
        assert line["cut_documents"] == line["long_documents"] == longer
        assert line["tokens_lost"] == 0
        assert line["rows"] * line["sequence_length"] == line["tokens"] + line["padding_tokens"]


def test_an_empty_store_is_packed_and_reported_but_not_trained_on(tmp_path):
    tokens = write_token_store(tmp_path / "tokens")
    plan = plan_of(tmp_path, tokens)

    report = run_body(compare_packing_body.run, None, {"plans": [plan.root]}, tmp_path / "report")

    assert report.read_json("report.json")[0]["rows"] == 0
    with pytest.raises(ConfigError, match="no tokens to train on"):
        batches_of(tokens, plan)


@pytest.mark.parametrize(
    "vocabulary",
    ["small", pytest.param("of 70,000", marks=pytest.mark.slow), "for Hugging Face alone"],
)
def test_ids_are_those_of_hugging_face(tmp_path, vocabulary):
    tokenizer = write_byte_tokenizer(tmp_path / "tokenizer", **VOCABULARIES[vocabulary])

    found = tokenized(tmp_path, tokenizer)

    encodings = oracle(tokenizer).encode_batch(list(TEXTS), add_special_tokens=False)
    assert sorted(found) == sorted([*encoding.ids, 0] for encoding in encodings)


def test_ids_give_every_text_back(tmp_path):
    tokenizer = write_byte_tokenizer(tmp_path / "tokenizer")

    found = tokenized(tmp_path, tokenizer)

    assert sorted(oracle(tokenizer).decode(ids[:-1]) for ids in found) == sorted(TEXTS)


def oracle(folder):
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.encode_special_tokens = True
    return tokenizer


def tokenized(root, tokenizer):
    """The ids of every text, end of text included."""
    inputs = {"documents": write_documents(root / "documents", TEXTS), "tokenizer": tokenizer}
    tokens = run_body(tokenize_body.run, TokenizeConfig(), inputs, root / "tokens")
    store = open_tokens(FolderInputs({"tokens": tokens}))
    return [store.tokens(rank).tolist() for rank in range(store.num_documents)]


REFUSED = {
    "no end of text": ({"model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}}, "endoftext"),
    "an unknown pre-tokenizer": ({"pre_tokenizer": {"type": "Quantum"}}, "cannot read"),
    "no model": ({"model": None}, "cannot read"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_tokenizer_that_no_engine_can_follow_is_refused(tmp_path, case):
    changes, said = REFUSED[case]
    folder = write_byte_tokenizer(tmp_path / "tokenizer")
    file = folder / "tokenizer.json"
    settings = json.loads(file.read_bytes()) | {"added_tokens": []} | changes
    file.write_text(json.dumps(settings))
    inputs = {"documents": write_documents(tmp_path / "documents", ["a"]), "tokenizer": folder}

    with pytest.raises(ConfigError, match=said):
        run_body(tokenize_body.run, TokenizeConfig(), inputs, tmp_path / "tokens")


def test_a_file_that_is_no_tokenizer_is_refused(tmp_path):
    folder = tmp_path / "tokenizer"
    folder.mkdir()
    (folder / "tokenizer.json").write_text("<html>404</html>")
    inputs = {"documents": write_documents(tmp_path / "documents", ["a"]), "tokenizer": folder}

    with pytest.raises(ConfigError, match=r"tokenizer\.json that starts with '<html>404"):
        run_body(tokenize_body.run, TokenizeConfig(), inputs, tmp_path / "tokens")
