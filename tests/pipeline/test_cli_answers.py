"""What the asking verbs say once results have been replaced, evicted or left out of a run."""

import pytest

from pipeline.site.anonymity import Anonymizer
from pipeline.site.overview import overview_document

RANDOM = "__import__('os').urandom(8).hex()"


@pytest.fixture
def differing(seaglass, recipe, project):
    """What a rerun said of a step that makes other bytes each time."""
    project.edit("bodies.py", '{"total": sum(counts.values())}', RANDOM)
    seaglass("run", *recipe, "--on", "inline", "--json")
    words = ["total", *recipe[1:], "--on", "inline", "--json"]
    (row,) = seaglass("rerun", recipe[0], *words).json["steps"]
    return row


def test_ls_shows_what_a_name_points_at_after_a_promotion(seaglass, differing):
    seaglass("promote", "total", differing["attempt"])

    screen, rows = seaglass("ls").out, seaglass("ls", "--json").json

    found = {row["name"]: row["content_digest"] for row in rows}
    assert found["total"] == differing["new_content_digest"]
    assert differing["new_content_digest"][:12] in screen
    assert differing["content_digest"][:12] not in screen


def test_the_page_shows_what_a_name_points_at_after_a_promotion(seaglass, differing, project):
    seaglass("promote", "total", differing["attempt"])

    names = overview_document(project.store, Anonymizer())["names"]

    found = {row["name"]: row["content_digest"] for row in names}
    assert found["total"] == differing["new_content_digest"]
