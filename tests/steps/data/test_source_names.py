"""What people type as a source means what the manual says."""

import pytest

from pipeline.errors import ConfigError
from steps.data.source_names import source_from
from steps.data.sources import HubDataset, LocalFiles, RemoteFiles

COMMIT = "0123456789abcdef0123456789abcdef01234567"


def test_a_hub_dataset_carries_its_commit_and_options():
    source = source_from(f"hf://datasets/org/name@{COMMIT}?split=validation&config=en")

    assert source == HubDataset(
        dataset="org/name", revision=COMMIT, split="validation", config="en"
    )


@pytest.mark.parametrize("scheme", ["http", "https", "gs", "s3"])
def test_urls_are_remote_files(scheme):
    text = f"{scheme}://bucket/a.jsonl, {scheme}://bucket/b.jsonl"

    assert source_from(text) == RemoteFiles(
        urls=(f"{scheme}://bucket/a.jsonl", f"{scheme}://bucket/b.jsonl")
    )


def test_globs_are_local_files():
    assert source_from("a/**/*.parquet", text_field="body") == LocalFiles(
        patterns=("a/**/*.parquet",), text_field="body"
    )


@pytest.mark.parametrize(
    "text",
    [
        "",
        " , ",
        "ftp://host/x.jsonl",
        "gs://bucket/x.jsonl,local.jsonl",
        "hf://datasets/org/name",
        f"hf://datasets/org/name@{COMMIT}?revision=main",
    ],
)
def test_what_cannot_be_meant_is_refused_with_the_text(text):
    with pytest.raises(ConfigError, match="source"):
        source_from(text)


@pytest.mark.parametrize(
    "text",
    ["hf://a/b", "hf://", f"hf://datasets/a/b@{COMMIT},hf://datasets/c/d@{COMMIT}", "x,hf://a"],
)
def test_a_hub_dataset_of_another_form_is_shown_the_form(text):
    with pytest.raises(ConfigError, match="hf://datasets/ORG/NAME@COMMIT"):
        source_from(text)


def test_an_unknown_protocol_is_named_with_the_known_ones():
    with pytest.raises(ConfigError, match=r"ftp:// is no known protocol.*gs://.*hf://datasets/ORG"):
        source_from("ftp://host/x.jsonl")
