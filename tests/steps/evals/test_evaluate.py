import gzip
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer

from model.config import AttentionConfig, ExpertsConfig, ModelConfig
from model.initialization import initialize
from model.transformer import Transformer
from pipeline.errors import ConfigError, RecipeError
from pipeline.folder import FolderArtifact, run_body
from pipeline.step import Step
from steps.evals.evaluate import EvaluateConfig, evaluate
from steps.evals.evaluate_body import evaluate as evaluate_body
from steps.evals.held_out import read_held_out
from steps.evals.score import score_documents
from steps.evals.windows import windows
from steps.token_store import TokenStore
from steps.train.pretrain import PretrainConfig, TrainConfig
from steps.train.pretrain_body import pretrain


@pytest.fixture(scope="module")
def config(tiny_corpus):
    model = ModelConfig(
        vocab_size=tiny_corpus.vocab_size,
        d_model=16,
        num_layers=1,
        attention=AttentionConfig(num_heads=2, num_kv_heads=2, head_dim=8),
        experts=ExpertsConfig(num_experts=4, top_k=2, d_expert=8),
    )
    train = TrainConfig(num_updates=60, batch_size=4, learning_rate=3e-2)
    return PretrainConfig(model=model, train=train)


@pytest.fixture(scope="module")
def checkpoint(tiny_corpus, config, tmp_path_factory):
    into = tmp_path_factory.mktemp("checkpoint") / "out"
    inputs = {"plan": tiny_corpus.plan, "tokens": tiny_corpus.tokens}
    run_body(pretrain, config, inputs, into, cpus=1)
    return into


@pytest.fixture
def roles(tiny_corpus, checkpoint):
    return {
        "checkpoint": checkpoint,
        "documents": tiny_corpus.documents,
        "tokenizer": tiny_corpus.tokenizer,
        "tokens": tiny_corpus.tokens,
    }


def _evaluate(roles, into):
    return run_body(evaluate_body, EvaluateConfig(), roles, into, cpus=1)


def _held_out(corpus, max_bytes=None):
    documents, tokenizer = FolderArtifact(corpus.documents), FolderArtifact(corpus.tokenizer)
    return read_held_out(documents, tokenizer, eos_id=0, max_bytes=max_bytes)


@given(st.lists(st.integers(1, 50), max_size=5), st.integers(2, 12))
def test_windows_predict_every_token_but_the_first_once(lengths, context):
    predicted = [
        (window.document, token)
        for window in windows(lengths, context)
        for token in range(window.first, window.end)
    ]

    assert predicted == [
        (d, token) for d, length in enumerate(lengths) for token in range(1, length)
    ]


@given(st.lists(st.integers(1, 50), max_size=5), st.integers(2, 12))
def test_windows_fit_the_context_and_carry_half_of_it(lengths, context):
    for window in windows(lengths, context):
        assert window.length <= context
        assert window.first == 1 or window.first - window.start == context // 2


def test_a_trained_model_beats_the_untrained_and_the_unigram_one(roles, tmp_path):
    report = _evaluate(roles, tmp_path / "out").read_json("report.json")

    bits = report["bits_per_byte"]
    assert bits["trained"] < bits["unigram"] < bits["untrained"]
    assert report["below_unigram"] == pytest.approx(1 - bits["trained"] / bits["unigram"])


def test_every_held_out_byte_counts_once(roles, tiny_corpus, tmp_path):
    held_out = _held_out(tiny_corpus)

    report = _evaluate(roles, tmp_path / "out").read_json("report.json")

    assert report["bytes"] == sum(len(text.encode()) for text in held_out.texts)
    assert report["documents"] == report["available_documents"] == 6
    assert report["tokens"] == held_out.num_tokens


def test_the_unigram_figure_is_the_smoothed_frequency_of_training_tokens(
    roles, tiny_corpus, tmp_path
):
    tokenizer = Tokenizer.from_file(str(tiny_corpus.tokenizer / "tokenizer.json"))
    store = TokenStore(FolderArtifact(tiny_corpus.tokens))
    counts = np.ones(tokenizer.get_vocab_size())
    for rank in range(store.num_documents):
        np.add.at(counts, store.tokens(rank), 1)
    held_out = _held_out(tiny_corpus)
    nats = sum(-np.log(counts[t] / counts.sum()) for doc in held_out.tokens for t in doc)

    report = _evaluate(roles, tmp_path / "out").read_json("report.json")

    expected = nats / math.log(2) / held_out.num_bytes
    assert report["bits_per_byte"]["unigram"] == pytest.approx(expected, rel=1e-9)


def test_the_gzip_figure_is_that_of_one_stream(roles, tiny_corpus, tmp_path):
    held_out = _held_out(tiny_corpus)
    packed = gzip.compress("".join(held_out.texts).encode(), 9, mtime=0)

    report = _evaluate(roles, tmp_path / "out").read_json("report.json")

    assert report["bits_per_byte"]["gzip -9"] == 8 * len(packed) / held_out.num_bytes


def test_two_evaluations_write_the_same_bytes(roles, tmp_path):
    first = _evaluate(roles, tmp_path / "a")
    second = _evaluate(roles, tmp_path / "b")

    assert first.content_digest == second.content_digest


def test_every_read_token_is_routed_or_counted_as_dropped(roles, config, tmp_path):
    report = _evaluate(roles, tmp_path / "out").read_json("report.json")

    router = report["routers"]["trained"]
    chosen = np.array(router["chosen_per_layer_and_expert"])
    assert chosen.sum(1).tolist() == [router["read_tokens"] * config.model.experts.top_k]
    assert np.array(router["dropped_per_layer_and_expert"]).sum() == 0


def test_a_score_does_not_depend_on_which_documents_are_read_together(tiny_corpus, config):
    model = Transformer(config.model)
    initialize(model, seed=3)
    tokens = _held_out(tiny_corpus).tokens

    together = score_documents(model, tokens, context=32, tell=lambda _: None)
    alone = [score_documents(model, [t], context=32, tell=lambda _: None) for t in tokens]

    assert together.nats == pytest.approx(sum(score.nats for score in alone), rel=1e-6)


def test_a_byte_limit_takes_whole_documents_in_digest_order(tiny_corpus):
    everything = _held_out(tiny_corpus)
    sizes = [len(text.encode()) for text in everything.texts]

    some = _held_out(tiny_corpus, max_bytes=sizes[0] + sizes[1] + 1)

    assert some.texts == everything.texts[:2]
    assert some.available_bytes == sum(sizes)


def test_a_byte_limit_below_the_first_document_is_refused(tiny_corpus):
    with pytest.raises(ConfigError, match="max_bytes=1 holds no document"):
        _held_out(tiny_corpus, max_bytes=1)


def test_the_declaration_finds_tokens_and_tokenizer_through_the_checkpoint():
    tokenizer = Step("train_tokenizer", "a:b")
    tokens = Step("tokenize", "a:b", inputs={"tokenizer": tokenizer})
    trained = Step("pretrain", "a:b", inputs={"tokens": tokens})
    documents = Step("split", "a:b")

    step = evaluate(trained, documents)

    assert step.inputs == {
        "checkpoint": trained,
        "documents": documents,
        "tokenizer": tokenizer,
        "tokens": tokens,
    }


def test_a_checkpoint_without_tokens_is_refused():
    with pytest.raises(RecipeError, match="tokens and tokenizer cannot be found"):
        evaluate(Step("pretrain", "a:b"), Step("split", "a:b"))
