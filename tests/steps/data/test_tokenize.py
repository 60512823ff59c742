import datasets
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, pre_tokenizers

from pipeline.errors import ConfigError, CorruptError
from pipeline.folder import FolderArtifact, FolderOutput, run_body
from steps.data import tokenize_engines
from steps.data.tokenize import TokenizeConfig
from steps.data.tokenize_body import run
from steps.data.tokenize_probes import PROBES
from steps.data.train_tokenizer import TrainTokenizerConfig
from steps.data.train_tokenizer_body import run as train_body
from steps.token_store import TokenStore
from tests.steps.token_builders import (
    EOS,
    doc_id,
    write_byte_tokenizer,
    write_documents,
    write_token_store,
)

TEXTS = [text for text in PROBES if text] + [f"document {n} " * (n + 1) for n in range(40)]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    root = tmp_path_factory.mktemp("trained")
    documents = write_documents(root / "documents", TEXTS)
    config = TrainTokenizerConfig(vocab_size=400)
    return run_body(train_body, config, {"documents": documents}, root / "tokenizer").root


def encode(tmp_path, tokenizer, *shards, name="tokens", sort=True, **config):
    documents = write_documents(tmp_path / f"{name}-documents", *shards, sort=sort)
    inputs = {"documents": documents, "tokenizer": tokenizer}
    return run_body(run, TokenizeConfig(**config), inputs, tmp_path / name)


def ids_by_text(artifact, texts):
    store = TokenStore(artifact)
    ranks = {name: rank for rank, name in enumerate(sorted(doc_id(text) for text in texts))}
    return {text: store.tokens(ranks[doc_id(text)]).tolist() for text in texts}


def oracle(folder, texts):
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.encode_special_tokens = True
    return {text: tokenizer.encode(text, add_special_tokens=False).ids for text in texts}


def wrong_ids(monkeypatch):
    original = tokenize_engines.FastEngine.encode

    def encode_wrongly(self, texts):
        encoded = original(self, texts)
        return encoded._replace(ids=encoded.ids ^ 1)

    monkeypatch.setattr(tokenize_engines.FastEngine, "encode", encode_wrongly)


def test_ids_are_those_of_the_oracle_and_one_end_of_text(tmp_path, trained):
    artifact = encode(tmp_path, trained, TEXTS)

    found = ids_by_text(artifact, TEXTS)

    assert found == {text: [*ids, 0] for text, ids in oracle(trained, TEXTS).items()}
    assert artifact.read_json("tokens.json")["engine"]["name"] == "fastokens"


@settings(max_examples=20)
@given(st.lists(st.text(), max_size=30))
def test_the_engines_agree_on_any_text(trained, texts):
    tokenizer_json = (trained / "tokenizer.json").read_text()

    difference = tokenize_engines.first_difference(tokenizer_json, texts, special_text="plain")

    assert difference is None


def test_a_control_token_in_a_text_is_plain_text(tmp_path, trained):
    text = f"before{EOS}after"

    artifact = encode(tmp_path, trained, [text])

    assert ids_by_text(artifact, [text])[text].count(0) == 1


def test_a_control_token_in_a_text_is_one_if_asked(tmp_path, trained):
    text = f"before{EOS}after"

    artifact = encode(tmp_path, trained, [text], special_text="control")

    assert ids_by_text(artifact, [text])[text].count(0) == 2


def test_one_difference_and_the_oracle_encodes_everything(tmp_path, trained, monkeypatch):
    right = encode(tmp_path, trained, TEXTS[:20], TEXTS[20:], name="right")
    wrong_ids(monkeypatch)

    artifact = encode(tmp_path, trained, TEXTS[:20], TEXTS[20:])

    assert artifact.read_bytes("tokens-00001.arrow") == right.read_bytes("tokens-00001.arrow")
    engine = artifact.read_json("tokens.json")["engine"]
    assert engine["name"] == "tokenizers"
    assert "differ at token 0" in engine["fallback"]


def test_a_tokenizer_that_the_fast_engine_refuses_is_for_the_oracle(tmp_path):
    def split_by_script(tokenizer):
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
            [pre_tokenizers.UnicodeScripts(), pre_tokenizers.ByteLevel(add_prefix_space=False)]
        )

    tokenizer = write_byte_tokenizer(tmp_path / "tokenizer", changes=split_by_script)
    artifact = encode(tmp_path, tokenizer, TEXTS)

    expected = {text: [*ids, 0] for text, ids in oracle(tokenizer, TEXTS).items()}
    assert ids_by_text(artifact, TEXTS) == expected
    assert artifact.read_json("tokens.json")["engine"]["name"] == "tokenizers"


def test_the_ledger_balances_documents_bytes_and_tokens(tmp_path, trained):
    artifact = encode(tmp_path, trained, TEXTS)

    ledger = artifact.read_json("ledger.json")
    assert ledger["out"]["documents"] == len(TEXTS)
    assert ledger["out"]["bytes"] == sum(len(text.encode()) for text in TEXTS)
    assert ledger["added"]["end of document"]["tokens"] == len(TEXTS)


def test_every_document_keeps_its_length_in_bytes(tmp_path, trained):
    artifact = encode(tmp_path, trained, ["\u00e9" * 5])

    data = datasets.Dataset.from_file(str(artifact.local("tokens-00000.arrow")))

    assert data["text_bytes"][0] == 10


def test_datasets_reads_a_token_shard(tmp_path, trained):
    artifact = encode(tmp_path, trained, ["some text"])

    data = datasets.Dataset.from_file(str(artifact.local("tokens-00000.arrow")))

    expected = [*oracle(trained, ["some text"])["some text"], 0]
    assert data[0]["tokens"] == expected
    assert data.features["tokens"].feature.dtype == "uint16"


def test_a_vocabulary_of_70_000_needs_wider_ids(tmp_path):
    tokenizer = write_byte_tokenizer(tmp_path / "tokenizer", unused=70_000)

    artifact = encode(tmp_path, tokenizer, ["some text"])

    tokens = TokenStore(artifact).tokens(0)
    assert tokens.dtype == np.uint32
    assert tokens.tolist() == [*oracle(tokenizer, ["some text"])["some text"], 0]
    assert tokens[0] > 70_000


def test_no_documents_make_an_empty_store(tmp_path, trained):
    artifact = encode(tmp_path, trained, [])

    facts = artifact.read_json("tokens.json")
    assert (facts["documents"], facts["tokens"], facts["sorted"]) == (0, 0, True)
    assert TokenStore(artifact).lengths.size == 0


def test_a_long_document_stays_one_document(tmp_path, trained):
    text = "word " * 300_000

    artifact = encode(tmp_path, trained, [text, "short"])

    assert len(ids_by_text(artifact, [text, "short"])[text]) > 300_000


def test_a_store_knows_whether_its_documents_are_sorted(tmp_path, trained):
    by_id = sorted(TEXTS, key=doc_id)

    in_order = encode(tmp_path, trained, by_id[:9], by_id[9:], name="in_order")
    shuffled = encode(tmp_path, trained, by_id[9:], by_id[:9], name="shuffled")

    assert in_order.read_json("tokens.json")["sorted"] is True
    assert shuffled.read_json("tokens.json")["sorted"] is False


def test_ranks_name_the_same_documents_in_any_sharding(tmp_path, trained):
    one = TokenStore(encode(tmp_path, trained, TEXTS, name="one"))
    other = TokenStore(encode(tmp_path, trained, TEXTS[9:], TEXTS[:9], name="other", sort=False))

    assert one.doc_ids_sha256 == other.doc_ids_sha256
    for rank in range(len(TEXTS)):
        assert one.tokens(rank).tolist() == other.tokens(rank).tolist()


def test_a_store_with_ids_of_another_width_is_refused(tmp_path):
    tokens = write_token_store(tmp_path / "tokens", [("abc", [5, 0])])

    with pytest.raises(CorruptError, match="32 hex digits"):
        _ = TokenStore(FolderArtifact(tokens)).doc_ids


def test_truncation_and_padding_of_a_tokenizer_do_not_reach_documents(tmp_path):
    def truncate_and_pad(tokenizer):
        tokenizer.enable_truncation(5)
        tokenizer.enable_padding(length=50)

    tokenizer = write_byte_tokenizer(tmp_path / "tokenizer", changes=truncate_and_pad)

    artifact = encode(tmp_path, tokenizer, ["exactly 21 bytes long"])

    assert TokenStore(artifact).lengths.tolist() == [22]


def test_a_tokenizer_without_the_end_of_text_token_is_refused(tmp_path):
    tokenizer = write_byte_tokenizer(tmp_path / "tokenizer", specials=["</s>"])

    with pytest.raises(ConfigError, match=r"'<\|endoftext\|>' is not in the vocabulary"):
        encode(tmp_path, tokenizer, ["text"])


def test_the_end_of_text_token_of_another_tokenizer_can_be_named(tmp_path):
    tokenizer = write_byte_tokenizer(tmp_path / "tokenizer", specials=["<pad>", "</s>"])

    artifact = encode(tmp_path, tokenizer, ["text"], end_of_text="</s>")

    assert TokenStore(artifact).tokens(0)[-1] == 1


def test_a_tokenizer_with_dropout_is_refused(tmp_path):
    def drop(tokenizer):
        tokenizer.model.dropout = 0.1

    tokenizer = write_byte_tokenizer(tmp_path / "tokenizer", changes=drop)

    with pytest.raises(ConfigError, match=r"dropout=0\.1"):
        encode(tmp_path, tokenizer, ["text"])


def test_a_fallback_is_told_in_the_diary(tmp_path, trained, monkeypatch):
    wrong_ids(monkeypatch)
    documents = write_documents(tmp_path / "documents", ["text"])
    inputs = {"documents": documents, "tokenizer": trained}
    told = []
    monkeypatch.setattr(
        FolderOutput, "event", lambda _self, kind, **body: told.append((kind, body))
    )

    run_body(run, TokenizeConfig(), inputs, tmp_path / "tokens")

    assert told[0][0] == "note"
    assert "falls back to tokenizers" in told[0][1]["text"]


def test_a_special_text_rule_that_does_not_exist_is_refused():
    with pytest.raises(ConfigError, match="special_text='drop'"):
        TokenizeConfig(special_text="drop")
