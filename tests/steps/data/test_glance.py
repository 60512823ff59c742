from __future__ import annotations

import json
import random

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from steps.data.glance import Glance, merged_glance
from steps.data.normal_form import document_id

TEXT = st.text(st.characters(codec="utf-8"), max_size=300)


def documents(texts: list[str]) -> pa.Table:
    columns = {"doc_id": [document_id(text) for text in texts], "text": texts}
    schema = pa.schema([("doc_id", pa.string()), ("text", pa.large_string())])
    return pa.table(columns, schema).sort_by("doc_id")


def glance_of(texts: list[str]) -> Glance:
    found = Glance()
    found.add(documents(texts))
    return found


def test_lengths_are_told_by_the_power_of_four_that_they_stay_below():
    histogram = glance_of(["", "a" * 63, "a" * 64, "a" * 255, "a" * 5000]).tables()[0]

    assert histogram["rows"] == [
        ["64 B", 2],
        ["256 B", 2],
        ["1 KiB", 0],
        ["4 KiB", 0],
        ["16 KiB", 1],
    ]


def test_samples_can_be_asked_for_and_show_on_any_terminal():
    samples = glance_of(["\x1b[2J\nclear", "clear"]).tables()[1]

    assert sorted(samples["rows"]) == sorted(
        [
            [document_id("\x1b[2J\nclear"), 10, "[2J clear"],
            [document_id("clear"), 5, "clear"],
        ]
    )


def test_of_nothing_there_is_nothing_to_show():
    assert glance_of([]).tables() == []


@given(st.lists(TEXT, max_size=12), st.integers(1, 4), st.randoms(use_true_random=False))
def test_a_glance_is_a_function_of_the_set_of_documents(texts, num_files, rng):
    shuffled = rng.sample(texts, len(texts))
    pages = [glance_of(shuffled[n::num_files]).as_json() for n in range(num_files)]

    merged = merged_glance(json.loads(json.dumps(page)) for page in pages)

    assert merged.tables() == glance_of(texts).tables()


def test_every_document_of_a_large_file_is_counted():
    texts = ["x" * random.Random(n).randrange(100_000) for n in range(200)]

    histogram = glance_of(texts).tables()[0]

    assert sum(count for _, count in histogram["rows"]) == 200
