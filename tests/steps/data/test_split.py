from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline.errors import ConfigError
from pipeline.folder import run_body
from pipeline.step import Step
from steps.data.normal_form import document_id
from steps.data.split import Part, SplitConfig, split
from steps.data.split_body import run
from steps.formats import DOCUMENT_FILES, KEPT_DOCUMENTS


def write_documents(folder, texts, *, num_files=1):
    folder.mkdir()
    for number in range(num_files):
        mine = texts[number::num_files]
        columns = {
            "doc_id": [document_id(text) for text in mine],
            "text": mine,
            "source": ["s"] * len(mine),
            "source_id": ["a"] * len(mine),
            "url": [None] * len(mine),
            "metadata": ["{}"] * len(mine),
            "cluster_size": [1] * len(mine),
        }
        table = pa.table(columns, schema=KEPT_DOCUMENTS)
        pq.write_table(table, folder / f"documents-{number:05d}.parquet")
    return folder


def texts_of(artifact) -> list[str]:
    paths = artifact.paths(DOCUMENT_FILES)
    return [text for p in paths for text in pq.read_table(artifact.local(p))["text"].to_pylist()]


@pytest.fixture
def both(tmp_path):
    def run_both(texts, *, held_out, num_files=1, name="documents"):
        folder = write_documents(tmp_path / name, texts, num_files=num_files)
        configs = [SplitConfig(part=part, held_out=held_out) for part in Part]
        return [
            run_body(run, config, {"documents": folder}, tmp_path / f"{name}-{config.part.value}")
            for config in configs
        ]

    return run_both


TEXTS = [f"document number {n}" for n in range(2_000)]


def test_the_parts_hold_every_document_once(both):
    train, held_out = both(TEXTS, held_out=0.1)

    assert sorted(texts_of(train) + texts_of(held_out)) == sorted(TEXTS)
    assert not set(texts_of(train)) & set(texts_of(held_out))


def test_the_share_is_about_what_was_asked(both):
    _, held_out = both(TEXTS, held_out=0.1)

    assert 150 < len(texts_of(held_out)) < 250


def test_a_document_falls_on_one_side_in_every_corpus_and_file(both):
    _, held_out = both(TEXTS, held_out=0.1)

    _, other = both(TEXTS[::-2], held_out=0.1, num_files=3, name="other")

    assert set(texts_of(other)) == set(texts_of(held_out)) & set(TEXTS[::-2])


def test_a_larger_share_only_adds_documents(both):
    _, small = both(TEXTS, held_out=0.05)

    _, large = both(TEXTS, held_out=0.2, name="again")

    assert set(texts_of(small)) < set(texts_of(large))


def test_each_part_accounts_for_the_other(both):
    train, held_out = both(TEXTS, held_out=0.1)

    pages = [part.read_json("ledger.json") for part in (train, held_out)]

    assert pages[0]["out"] == pages[1]["removed"]["the other part"]
    assert pages[0]["in"]["documents"] == 2_000


def test_no_documents_split_into_two_empty_parts(both):
    train, held_out = both([], held_out=0.1)

    assert texts_of(train) == texts_of(held_out) == []


@pytest.mark.parametrize("share", [0, 1, -0.1, 2])
def test_a_share_that_leaves_a_side_empty_is_refused(share):
    with pytest.raises(ConfigError, match="held_out="):
        SplitConfig(part=Part.TRAIN, held_out=share)


def test_the_two_steps_have_their_own_titles():
    sides = split(Step("deduplicate", "steps.data.deduplicate_body:run"))

    assert [step.title for step in sides] == ["split-train", "split-held-out"]
