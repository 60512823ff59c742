"""The page as files: whole, small heads, written once, and nothing foreign overwritten."""

from __future__ import annotations

import json
import re
from pathlib import Path

import fsspec
import pytest

from pipeline.errors import StoreError, UsageError
from pipeline.site.publish import publish_site
from pipeline.site.static import static_files

# Whatever a page may load or link to, apart from places in itself.
LOADED = re.compile(r"""(?:src|href)=["']([^"'#][^"']*)["']|\bfrom ["']([^"']+)["']""")


@pytest.fixture
def published(study, tmp_path):
    """A folder with the page in it."""
    publish_site(study.pages, str(tmp_path / "page"))
    return tmp_path / "page"


def test_every_document_is_a_file_with_a_small_head_beside_it(published, study):
    names = [name for name, _ in study.pages.crawl()]

    for name in names:
        document = (published / "data" / f"{name}.json").read_bytes()
        head = (published / "data" / f"{name}.head.json").read_bytes()
        assert json.loads(document)["kind"] in {"overview", "run", "artifact"}
        assert len(head) < 100
    assert {path.name for path in published.iterdir()} == {"data", *static_files()}


def test_a_second_publish_writes_nothing(published, study):
    again = publish_site(study.pages, str(published))

    assert again.num_written == 0
    assert again.num_documents > 5


def test_a_file_that_changed_is_written_again_and_no_other(published, study, monkeypatch):
    changed = static_files() | {"style.css": b"body { }"}
    monkeypatch.setattr("pipeline.site.publish.static_files", lambda: changed)

    again = publish_site(study.pages, str(published))

    assert again.num_written == 1
    assert (published / "style.css").read_bytes() == b"body { }"


def test_a_head_is_written_after_its_document(study, monkeypatch):
    order: list[str] = []
    monkeypatch.setattr(
        "pipeline.site.publish.in_parallel", lambda write, files: order.extend(files)
    )

    publish_site(study.pages, "memory://order-of-writing")

    heads = [name.endswith(".head.json") for name in order]
    assert heads == sorted(heads)
    assert True in heads


def test_somebody_elses_page_is_not_overwritten(study, tmp_path):
    (tmp_path / "index.html").write_text("a page of mine")

    with pytest.raises(UsageError, match="not ours"):
        publish_site(study.pages, str(tmp_path))

    assert [path.name for path in tmp_path.iterdir()] == ["index.html"]


@pytest.mark.parametrize("url", ["", "file://"])
def test_no_place_is_refused_and_nothing_is_written(study, url, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    with pytest.raises(UsageError, match="names no place; give a folder"):
        publish_site(study.pages, url)

    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="there is no /proc")
def test_a_place_where_no_folder_can_be_made_is_named(study):
    with pytest.raises(StoreError, match="no folder can be made at /proc/nothing"):
        publish_site(study.pages, "/proc/nothing")


def test_a_page_is_written_to_any_filesystem_that_can_be_written(study):
    publish_site(study.pages, "memory://a-page/here")

    filesystem = fsspec.filesystem("memory")
    assert filesystem.cat_file("/a-page/here/index.html") == static_files()["index.html"]


def test_the_page_loads_nothing_but_its_own_files_beside_it():
    files = static_files()

    loaded = {a or b for data in files.values() for a, b in LOADED.findall(data.decode())}

    assert {path.removeprefix("./") for path in loaded} <= files.keys()


def test_the_page_builds_no_markup_from_text():
    markup = re.compile(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|DOMParser")

    assert not [n for n, data in static_files().items() if markup.search(data.decode())]
