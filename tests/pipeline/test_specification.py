"""docs/store.md against the store: every object that runs leave is described, field by field."""

import json
import re
from dataclasses import fields

import pytest

from pipeline.errors import FormatError
from pipeline.keeping.gc import Collector
from pipeline.keeping.importing import Wanted, import_files
from pipeline.provenance import person
from pipeline.store import layout
from pipeline.store.leases import Lease
from pipeline.store.objects import (
    End,
    Location,
    Manifest,
    Owner,
    Part,
    Promotion,
    Record,
    Waiver,
    dump,
)
from pipeline.store.pins import pin
from pipeline.store.store import Store
from tests.pipeline.faulty import make_task, try_once

SECTION = re.compile(r"(?ms)^### `(?P<key>[^`]+)`\n(?P<text>.*?)(?=^### |^## |\Z)")
EXAMPLE = re.compile(r"```json\n(.*?)```", re.DOTALL)
ELSEWHERE = ("v1/data/", "v1/probe/")  # hold bytes, or nothing that anyone reads


@pytest.fixture(scope="module")
def described(request):
    """Key pattern -> the fields of its examples."""
    page = (request.config.rootpath / "docs" / "store.md").read_text(encoding="utf-8")
    return {
        found["key"]: {
            field for example in EXAMPLE.findall(found["text"]) for field in json.loads(example)
        }
        for found in SECTION.finditer(page)
    }


@pytest.fixture
def lived_in(make_project):
    """A store with what runs, a failure, shards, a state, an import, a pin and a gc leave."""
    project = make_project()
    pin(project.store, project.run().records["total"], reason="kept", by=person())
    project.edit("bodies.py", '"facts": {"total": 3}', '"facts": 1 / 0')
    project.run()
    for body in ("write", "speak"):
        try_once(make_task(project.store.url, body))
    import_files(project.store, Wanted(name="text", place=str(project.text)))
    import_files(project.store, Wanted(name="text", place=str(project.text)))
    project.edit("bodies.py", '"facts": 1 / 0', '"facts": {}')
    project.run("smallest=2")
    lease = Lease(project.store, "20261201T092910-d71622c6")
    for digest in ("a" * 64, "b" * 64):
        lease.hold([digest])
    lease.beat()
    assert Collector(project.store).collect().num_objects
    return project.store


def pattern_of(key, described):
    """The described pattern that a key matches."""
    for pattern in described:
        numbered = re.sub("<(seq|epoch)>", r"\\d+", re.escape(pattern).replace(r"\ ", " "))
        form = re.sub("<[^>]+>", "[^/]+", numbered)
        if re.fullmatch(form, key):
            return pattern
    return None


def documents(store, key):
    data = store.adapter.read(key)
    lines = data.splitlines() if key.endswith(".jsonl") else [data]
    return [json.loads(line) for line in lines]


def test_every_object_of_a_store_is_described_with_all_its_fields(lived_in, described):
    keys = ["seaglass.json", *lived_in.adapter.list("v1")]
    seen = set()

    for key in keys:
        if key.startswith(ELSEWHERE):
            continue
        pattern = pattern_of(key, described)
        assert pattern is not None, key
        seen.add(pattern)
        for document in documents(lived_in, key):
            assert document.keys() <= described[pattern], key
    assert len(seen) > 15


@pytest.mark.parametrize(
    ("kind", "pattern"),
    [
        (Record, "v1/actions/<aa>/<action key>.json"),
        (Location, "v1/locations/<aa>/<content digest>/<attempt>.json"),
        (Part, "v1/parts/<aa>/<action key>/<part key>.json"),
        (End, "v1/attempts/<aa>/<action key>/<attempt>/end.json"),
        (Owner, "v1/claims/<aa>/<action key>/<epoch>.json"),
        (Promotion, "v1/promotions/<aa>/<action key>/<seq>.json"),
        (Waiver, "v1/waivers/<aa>/<definition digest>/<seq>.json"),
    ],
)
def test_no_field_is_described_that_is_not_there(kind, pattern, described):
    assert described[pattern] - {"nonce"} == {spec.name for spec in fields(kind)}


# ---------------------------------------------------------------------------------- newer formats


def newer(store, key, **changed):
    """The document at a key, as a later version may write it."""
    path = store.adapter.local_path(key)
    document = json.loads(path.read_bytes())
    path.unlink()
    path.write_bytes(dump({**document, "format": 2, **changed}))


def test_a_newer_store_is_refused(project):
    project.run()
    newer(project.store, "seaglass.json")

    with pytest.raises(FormatError, match="format 2 is newer than 1; upgrade seaglass"):
        Store(project.store.adapter)


def test_a_newer_record_is_refused(project):
    record = project.run().records["total"]
    newer(project.store, layout.action(record.action_key))

    with pytest.raises(FormatError, match="format 2 is newer than 1; upgrade seaglass"):
        project.plan()


def test_a_newer_record_inside_a_seal_is_refused(project):
    record = project.run().records["total"]
    seal = End(state="sealed", attempt=record.attempt, record={"format": 2})

    with pytest.raises(FormatError, match="upgrade seaglass"):
        Record.from_json(seal.record, "the seal")


def test_a_newer_manifest_is_refused(project):
    record = project.run().records["total"]
    newer(project.store, layout.manifest(record.content_digest))

    with pytest.raises(FormatError, match="format 2 is newer than 1; upgrade seaglass"):
        project.store.manifest(record.content_digest)


def test_a_newer_plan_is_refused(project):
    run_id = project.run().run_id
    newer(project.store, layout.run(run_id, "plan.json"))
    project.edit("words.py", "if word]", "if word.strip()]")

    with pytest.raises(FormatError, match="format 2 is newer than 1; upgrade seaglass"):
        project.causes()


def test_what_has_a_format_says_so(project):
    result = project.run()
    record = result.records["total"]
    keys = [
        "seaglass.json",
        layout.action(record.action_key),
        layout.manifest(record.content_digest),
        layout.manifest(result.records["read"].sources[0].manifest_digest),
        layout.run(result.run_id, "plan.json"),
    ]

    assert [project.store.read(key)["format"] for key in keys] == [1] * 5


def test_a_field_that_is_not_known_is_left_alone(project):
    record = project.run().records["total"]
    path = project.store.adapter.local_path(layout.action(record.action_key))
    path.write_bytes(dump({**json.loads(path.read_bytes()), "mood": "fine"}))

    assert project.store.record(record.action_key) == record


def test_a_manifest_without_a_format_is_read(project):
    record = project.run().records["total"]
    manifest = project.store.manifest(record.content_digest)
    rows = json.loads(manifest.to_bytes())
    del rows["format"]

    assert Manifest.from_bytes(dump(rows), "here") == manifest
