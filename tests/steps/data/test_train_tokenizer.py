import json

import pytest
from tokenizers import Tokenizer

from pipeline.encoding import digest
from pipeline.errors import ConfigError
from pipeline.folder import run_body
from pipeline.step import Step
from steps.data.train_tokenizer import TrainTokenizerConfig, train_tokenizer
from steps.data.train_tokenizer_body import run
from tests.steps.token_builders import EOS, doc_id, write_documents

TEXTS = [f"def function_{n}(value):\n    return value + {n}\n" * 3 for n in range(60)]


def train(tmp_path, *shards, name="tokenizer", **config):
    documents = write_documents(tmp_path / f"{name}-documents", *shards)
    config = TrainTokenizerConfig(**{"vocab_size": 300, **config})
    return run_body(run, config, {"documents": documents}, tmp_path / name)


def test_the_tokenizer_has_the_vocabulary_asked_for(tmp_path):
    artifact = train(tmp_path, TEXTS)

    tokenizer = Tokenizer.from_file(str(artifact.local("tokenizer.json")))
    assert tokenizer.get_vocab_size() == 300
    assert tokenizer.token_to_id(EOS) == 0


def test_any_text_comes_back_from_its_tokens(tmp_path):
    artifact = train(tmp_path, TEXTS)
    text = "na\u00efve \U0001f600\u200d \x00\r\n\ttabs   and  \u4f60\u597d <|endoftext |>"

    tokenizer = Tokenizer.from_file(str(artifact.local("tokenizer.json")))

    assert tokenizer.decode(tokenizer.encode(text).ids) == text


def test_indentation_becomes_one_token(tmp_path):
    artifact = train(tmp_path, TEXTS)

    tokenizer = Tokenizer.from_file(str(artifact.local("tokenizer.json")))

    assert tokenizer.token_to_id("\u0120" * 3) is not None  # the fourth space leads the word


def test_neither_order_nor_sharding_of_documents_moves_a_byte(tmp_path):
    one = train(tmp_path, TEXTS, name="one")
    other = train(tmp_path, TEXTS[40:][::-1], [], TEXTS[:40], name="other")

    assert one.content_digest == other.content_digest


def test_a_limit_takes_the_documents_with_the_smallest_ids_in_any_sharding(tmp_path):
    by_id = sorted(TEXTS, key=doc_id)
    limit = sum(len(text) for text in by_id[:20])
    few = train(tmp_path, by_id[:20], name="few")

    limited = train(tmp_path, TEXTS[::2], TEXTS[1::2], name="limited", max_text_bytes=limit)

    assert limited.read_bytes("tokenizer.json") == few.read_bytes("tokenizer.json")
    removed = limited.read_json("ledger.json")["removed"]["beyond max_text_bytes"]
    assert removed["documents"] == 40


def test_too_little_text_gives_a_smaller_vocabulary_and_says_so(tmp_path):
    artifact = train(tmp_path, ["ab ab"], vocab_size=400)

    tokenizer = Tokenizer.from_file(str(artifact.local("tokenizer.json")))
    assert tokenizer.get_vocab_size() < 400
    assert "fewer than 400" in artifact.read_json("summary.json")["facts"]["note"]


def test_no_documents_give_a_tokenizer_of_bytes(tmp_path):
    artifact = train(tmp_path, [])

    tokenizer = json.loads(artifact.read_bytes("tokenizer.json"))
    assert tokenizer["model"]["merges"] == []
    assert len(tokenizer["model"]["vocab"]) == 257


def test_the_end_of_text_token_is_not_learned_from_text_that_spells_it(tmp_path):
    artifact = train(tmp_path, [f"a{EOS}b {n}" for n in range(50)])

    tokenizer = Tokenizer.from_file(str(artifact.local("tokenizer.json")))
    tokenizer.encode_special_tokens = True
    assert 0 not in tokenizer.encode(f"a{EOS}b").ids


def test_the_merges_of_a_fixed_text_are_the_golden_ones(tmp_path):
    artifact = train(tmp_path, TEXTS, vocab_size=264)

    # A failing golden means that the same recipe trains another tokenizer, and that everything
    # below it moves: say so in the changelog, under what moves digests.
    merges = json.loads(artifact.read_bytes("tokenizer.json"))["model"]["merges"]
    assert [" ".join(pair) for pair in merges] == [
        "a l",
        "u e",
        "v al",
        "Ġ Ġ",
        "val ue",
        "( value",
        ") :",
    ]


def test_the_step_is_named_by_what_decides_the_merges():
    documents = Step("documents", "steps.data.download_body:run")

    one = train_tokenizer(documents, vocab_size=4_096)
    other = train_tokenizer(documents, vocab_size=8_192)

    assert digest(one.config) != digest(other.config)


@pytest.mark.parametrize(
    ("field", "value"), [("vocab_size", 256), ("max_text_bytes", 0), ("end_of_text", "")]
)
def test_a_config_out_of_bounds_is_refused_with_its_value(field, value):
    with pytest.raises(ConfigError, match=f"{field}={value!r}"):
        TrainTokenizerConfig(**{field: value})
