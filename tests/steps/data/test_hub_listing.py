from __future__ import annotations

import pytest

from steps.data.hub_listing import declared_patterns, unlisted

KNOWN = [
    "README.md",
    ".cache/train-00002-of-00003.parquet",
    *(f"data/train-0000{n}-of-00003.parquet" for n in range(3)),
    "data/test-00000-of-00001.parquet",
    "data/deep/more.parquet",
    "other/train-00000-of-00003.parquet",
]
TRAIN = KNOWN[2:5]
TEST = KNOWN[5]


@pytest.mark.parametrize(
    ("patterns", "missing"),
    [
        (["data/train-*"], TRAIN[2:]),
        (["data/train-*", "data/deep"], ["data/deep/more.parquet", *TRAIN[2:]]),
        (["data/train-0000[01]*"], []),
        ([], []),
        (None, TRAIN[2:]),
    ],
    ids=["a pattern", "a folder", "a part of the files", "no file", "left open"],
)
def test_what_belongs_to_a_split_and_is_not_in_it_is_found(patterns, missing):
    found = unlisted(TRAIN[:2], KNOWN, patterns=patterns, others={TEST})

    assert found == missing


@pytest.mark.parametrize(
    ("declared", "patterns"),
    [
        ({}, None),
        ({"data_files": "data/*"}, ["data/*"]),
        ({"data_files": [{"split": "train", "path": "data/train-*"}]}, ["data/train-*"]),
        ({"data_files": [{"split": "test", "path": "x"}]}, []),
        ({"data_dir": "d", "data_files": [{"split": "train", "path": ["a", "b"]}]}, ["d/a", "d/b"]),
    ],
    ids=[
        "not at all",
        "for no split by name",
        "for the split",
        "for another split",
        "below a folder",
    ],
)
def test_the_card_says_which_files_make_a_split(declared, patterns):
    configs = [{"config_name": "en", **declared}, {"config_name": "de"}]

    assert declared_patterns(configs, "en", "train") == patterns


def test_a_card_without_configs_leaves_it_open():
    assert declared_patterns((), "default", "train") is None
