"""What is masked in text that is kept or shown, and what is left alone."""

import base64
import json
from dataclasses import dataclass
from urllib.parse import quote

import pytest

from pipeline.errors import ConfigError, StoreError
from pipeline.redaction import (
    redacted,
    redacted_value,
    remember,
    remember_environment,
    remember_fields,
)
from pipeline.shown import shown
from pipeline.sources import SourceManifest
from pipeline.step import Resources, Secret

URLS = {
    "https://ann:pa55@host/a": "https://***@host/a",
    "https://pa55@host/a": "https://***@host/a",
    "s3://KEY:se/cr+et@bucket/a": "s3://***@bucket/a",
    "postgres://ann:p@ss@host:5432/db": "postgres://***@host:5432/db",
    "see 'https://ann:pa55@host/a', then": "see 'https://***@host/a', then",
    "https://h/a?X-Amz-Signature=ab12&v=1": "https://h/a?X-Amz-Signature=***&v=1",
    "https://h/a?sv=1&sig=ab%2F12#top": "https://h/a?sv=1&sig=***#top",
    "https://h/a?access_token=ab12": "https://h/a?access_token=***",
    "https://h/a?X-Goog-Credential=me%40x": "https://h/a?X-Goog-Credential=***",
    "Authorization: Bearer abc.def-123": "Authorization: Bearer ***",
    "{'Authorization': 'Basic YW5uOnBhNTU='}": "{'Authorization': 'Basic ***'}",
}
MADE = [
    "hf_" + "aB3" * 10,
    "ghp_" + "aB3" * 12,
    "AKIAABCDEFGHIJKLMNOP",
    "sk-" + "aB3" * 10,
    "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----",
]
HARMLESS = [
    "https://host:8080/path@v1",
    "hf://datasets/org/name@0123456789",
    "gs://bucket/a@b:c",
    "https://h/a?page=2&tokenizer=bpe",
    "learning_rate=0.1 tokens=4096",
    "mail ann@example.org",
    "sha256:" + "ab" * 32,
]


@pytest.mark.parametrize("text", URLS)
def test_credentials_in_a_url_or_header_are_masked(text):
    assert redacted(text) == URLS[text]


@pytest.mark.parametrize("text", MADE)
def test_a_token_of_a_known_make_is_masked(text):
    assert redacted(f"before {text} after") == "before *** after"


@pytest.mark.parametrize("text", HARMLESS)
def test_what_is_no_secret_stays(text):
    assert redacted(text) == text


VALUE = 'pla"nted/v\u00e4lue\\1'
FORMS = {
    "itself": VALUE,
    "in a URL": quote(VALUE, safe=""),
    "in a path of a URL": quote(VALUE),
    "as a repr": repr([VALUE])[2:-2],
    "in JSON": json.dumps(VALUE)[1:-1],
    "in base64": base64.b64encode(VALUE.encode()).decode(),
}


@pytest.mark.parametrize("form", FORMS)
def test_a_remembered_value_is_masked_in_every_form(form):
    remember(VALUE)

    assert redacted(f"a {FORMS[form]} b") == "a *** b"


def test_each_line_of_a_long_secret_is_masked():
    remember("first-line-of-a-key-0001\nsecond-line-of-a-key-0002\n")

    assert redacted("x second-line-of-a-key-0002 y") == "x *** y"


def test_a_variable_with_a_telling_name_is_remembered(monkeypatch):
    monkeypatch.setenv("LAB_ACCESS_TOKEN", "planted-in-environment")
    monkeypatch.setenv("TOKENIZERS_PARALLELISM", "not-secret-at-all")
    remember_environment()

    found = redacted("planted-in-environment, not-secret-at-all")

    assert found == "***, not-secret-at-all"


def test_a_path_or_a_switch_in_such_a_variable_is_no_secret(monkeypatch, tmp_path):
    monkeypatch.setenv("APP_CREDENTIALS", str(tmp_path))
    monkeypatch.setenv("WANDB_API_KEY", "off")
    remember_environment()

    assert redacted(f"{tmp_path} is off") == f"{tmp_path} is off"


def test_a_text_under_a_telling_name_is_masked():
    value = {"api_key": "abcdefgh", "eos_token": "<|endoftext|>", "num_tokens": "12345678"}

    assert redacted_value(value) == {**value, "api_key": "***"}


def test_config_as_people_read_it_is_masked():
    assert shown({"url": ("https://ann:pa55@host/a", 1)}) == {"url": ["https://***@host/a", 1]}


def test_an_error_of_ours_is_masked():
    assert str(StoreError("store s3://KEY:pa55@bucket is gone")) == "store s3://***@bucket is gone"


def test_the_provenance_of_a_source_is_masked():
    manifest = SourceManifest(files=(), provenance={"urls": "https://ann:pa55@host/a"})

    assert manifest.provenance == {"urls": "https://***@host/a"}


def test_a_secret_gives_its_value_and_is_masked_from_then_on(monkeypatch):
    monkeypatch.setenv("LAB_PLACE", "planted-by-name")

    value = Secret(name="LAB_PLACE").value()

    assert value == "planted-by-name"
    assert redacted(value) == "***"


def test_a_secret_that_is_not_set_is_refused_with_its_name(monkeypatch):
    monkeypatch.delenv("LAB_PLACE", raising=False)

    with pytest.raises(ConfigError, match="LAB_PLACE: no such environment variable"):
        Secret(name="LAB_PLACE").value()


def test_a_secret_too_short_to_hide_is_refused_without_its_value(monkeypatch):
    monkeypatch.setenv("LAB_PLACE", "pa55")

    with pytest.raises(ConfigError, match="has 4 characters") as refusal:
        Secret(name="LAB_PLACE").value()

    assert "pa55" not in str(refusal.value)


def test_a_value_in_the_place_of_a_secret_is_refused_unseen():
    with pytest.raises(ConfigError, match="the names, never the values") as refusal:
        Resources(secrets=("planted-value",))

    assert "planted-value" not in str(refusal.value)


def test_a_text_under_a_telling_name_of_a_config_is_remembered():
    @dataclass(frozen=True)
    class Access:
        login: dict[str, object]

    remember_fields([Access({"password": "planted-in-config", "name": "plain-in-config"})])

    assert redacted("planted-in-config, plain-in-config") == "***, plain-in-config"
