"""--from: stores that are read after one's own and never written."""

import json
from functools import partial

import pytest

from pipeline.asking.artifacts import artifact_of, find_record
from pipeline.asking.lineage import walk_down, walk_up
from pipeline.digests import RememberedDigests
from pipeline.errors import FormatError, StoreError, UsageError
from pipeline.planning.plan import make_plan
from pipeline.recipes import load_recipe
from pipeline.running.board import Board
from pipeline.running.launch import make_executor
from pipeline.running.run import Run
from pipeline.store.local import LocalAdapter
from pipeline.store.store import Store, open_store
from tests.pipeline.faulty import make_task

# One more step on the count that is published, declared in the outsider's own recipe.
FORK = """
    from PACKAGE.steps import count, read, total
    from pipeline.step import Step


    def dag(path: str, smallest: int = 1):
        counts = count(read(path), smallest)
        return {"total": total(counts), "longest": longest(counts)}


    def longest(counts):
        return Step("longest", "PACKAGE.bodies:longest", inputs={"counts": counts})
    """
LONGEST = """

def longest(config, inputs, output):
    counts = inputs["counts"].read_json("counts.json")
    output.write_json("longest.json", max(counts, key=counts.get))
"""
SECRET = "hunter2-hunter2"


class ReadOnly:
    """A store that is not for us: it hands reads on and refuses writes, which are counted."""

    def __init__(self, inner):
        self.inner, self.writes = inner, []

    def __getattr__(self, name):
        if name in ("create", "replace", "open_write", "delete"):
            return partial(self._refuse, name)
        return getattr(self.inner, name)

    def _refuse(self, verb, key, *_):
        self.writes.append((verb, key))
        msg = f"{verb} {key}: you have no right to write here"
        raise StoreError(msg)


@pytest.fixture
def public(project):
    """A run in a store whose folders and files are read-only from then on."""
    project.run()
    root = project.root / "store"
    for path in sorted(root.rglob("*"), reverse=True):
        path.chmod(0o555 if path.is_dir() else 0o444)
    root.chmod(0o555)
    project.write({"recipe.py": FORK})
    bodies = project.root / project.name / "bodies.py"
    bodies.write_text(bodies.read_text() + LONGEST)
    before = state_of(root)
    yield project
    assert state_of(root) == before, "someone wrote upstream"
    for path in [root, *root.rglob("*")]:
        path.chmod(0o755)


def state_of(root):
    """Everything that a write would move."""
    return {str(p): (p.stat().st_mtime_ns, p.stat().st_size) for p in [root, *root.rglob("*")]}


@pytest.fixture
def own(public):
    """The outsider's store, over the published one."""
    return over(public, public.store)


def over(project, *upstream, name="own"):
    return Store(LocalAdapter(project.root / name), upstream=upstream)


def plan(project, store, *settings, **more):
    project.forget()
    recipe = load_recipe(f"{project.name}.recipe", [f"path={project.text}", *settings])
    return make_plan(recipe, store, RememberedDigests(project.root / "cache"), **more)


def run(project, store, *settings, where="inline"):
    found = plan(project, store, *settings)
    executor = partial(make_executor, where, found.codebase)
    return Run(found, Board(found.dag.nodes)).execute(executor)


def states(found):
    return {step.title: step.state for step in found.steps}


def test_an_outsider_runs_one_more_step_into_an_own_store(public, own):
    result = run(public, own)

    assert sorted(result.own) == ["longest"]
    artifact = artifact_of(own, result.records["longest"], RememberedDigests(public.root / "c"))
    assert artifact.read_json("longest.json") == "a.txt"


def test_a_run_asks_for_no_write_upstream(public):
    upstream = Store(ReadOnly(public.store.adapter))

    run(public, over(public, upstream))

    assert upstream.adapter.writes == []


def test_hits_from_upstream_need_no_copy(public, own):
    result = run(public, own)

    attempts = {key.split("/")[2] for key in own.adapter.list("v1/data")}
    assert attempts == {result.own["longest"].attempt}
    assert own.adapter.list("v1/manifests")[0].endswith(
        f"{result.own['longest'].content_digest}.json"
    )


def test_everything_is_a_hit_the_second_time(public, own):
    run(public, own)

    assert set(states(plan(public, own, everything=True)).values()) == {"cached"}


def test_lineage_spans_both_stores(public, own):
    result = run(public, own)
    longest, read = result.records["longest"], find_record(own, "read")

    up, down = walk_up(own, longest), walk_down(own, read)

    assert {record.title for record in up.records.values()} == {"longest", "count", "read"}
    assert {r.title for r in down.records.values()} == {"read", "count", "total", "longest"}


def test_an_edited_step_runs_here_and_says_why(public, own):
    public.edit("words.py", "if word]", "if word.strip()]")

    found = {step.title: step for step in plan(public, own, everything=True).steps}

    assert [found[name].state for name in ("read", "count", "total")] == ["cached", "run", "run"]
    assert "words" in found["count"].causes[0]


def test_names_point_to_what_is_upstream_after_a_run_here(public, own):
    run(public, own)

    assert own.own_ref("total") is not None
    assert find_record(own, "total@1") == find_record(own, "total@2")


def test_a_new_store_where_all_is_found_upstream_gets_its_format(public, own):
    from pipeline.running.refs import move_refs  # noqa: PLC0415 - stands beside what it is used for

    found = plan(public, own, everything=True, selectors=["total"])
    move_refs(found, found.resolution.records, None)

    assert own.adapter.read("seaglass.json") is not None


def test_a_corrupt_copy_upstream_is_buried_and_rebuilt_here(project):
    first = project.run()
    copy = project.store.copy(first.records["count"].content_digest)
    (project.root / "store" / copy.location.keys["counts.json"]).write_bytes(b"flipped")
    before = state_of(project.root / "store")
    project.edit("bodies.py", '"facts": {"total": 3}', '"facts": {"total": 4}')
    own = over(project, project.store)

    result = run(project, own)

    assert result.is_good
    assert result.records["count"] == first.records["count"]
    assert own.copy(first.records["count"].content_digest).store is own
    assert state_of(project.root / "store") == before


def test_a_rebuild_here_that_differs_hides_no_record_upstream_unless_promoted(make_project):
    project = make_project()
    project.edit("bodies.py", 'output.write_json("counts.json", kept)', NOISE)
    first = project.run()
    copy = project.store.copy(first.records["count"].content_digest)
    (project.root / "store" / copy.location.keys["counts.json"]).write_bytes(b"flipped")
    project.edit("bodies.py", '"facts": {"total": 3}', '"facts": {"total": 4}')
    own = over(project, project.store)

    result = run(project, own)

    assert result.promoted["count"].content_digest != first.records["count"].content_digest
    assert own.record(first.records["count"].action_key) == first.records["count"]


NOISE = """import time
    output.write_json("counts.json", {"noise": time.time_ns()})"""


def test_of_two_stores_the_first_counts(project):
    project.edit("bodies.py", 'output.write_json("counts.json", kept)', NOISE)
    project.run()
    other = over(project, name="other")
    run(project, other)

    first = over(project, project.store, other).record(find_record(other, "count").action_key)
    second = over(project, other, project.store).record(first.action_key)

    assert first.attempt == find_record(project.store, "count").attempt
    assert second.attempt == find_record(other, "count").attempt


def test_the_same_store_as_own_and_upstream_counts_once(project):
    project.run()

    assert open_store(project.store.url, [project.store.url]).upstream == ()


def test_a_store_that_is_named_twice_upstream_counts_once(public, tmp_path):
    store = open_store(str(tmp_path / "own"), [public.store.url, f"file://{public.store.url}"])

    assert len(store.upstream) == 1


def test_a_store_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(UsageError, match=r"holds no store .* check --from"):
        open_store(str(tmp_path / "own"), [str(tmp_path / "nothing")])


def test_a_store_of_a_newer_format_is_refused(tmp_path):
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "seaglass.json").write_text(json.dumps({"format": 2}))

    with pytest.raises(FormatError, match="format 2 is newer than 1; upgrade seaglass"):
        open_store(str(tmp_path / "own"), [str(tmp_path / "new")])


def test_a_task_shows_no_url(public):
    task = make_task(f"http://ann:{SECRET}@host/a", upstream=(f"http://ann:{SECRET}@host/b",))

    assert SECRET not in repr(task)


@pytest.mark.emulator
@pytest.mark.parametrize("cloud", ["s3_url", "gcs_url"])
def test_a_bucket_can_be_upstream(project, cloud, request):
    url = request.getfixturevalue(cloud)
    run(project, open_store(f"{url}/public"))
    before = open_store(f"{url}/public").adapter.list("v1")

    result = run(project, open_store(str(project.root / "own"), [f"{url}/public"]), "smallest=2")

    assert sorted(result.own) == ["count", "total"]
    assert open_store(f"{url}/public").adapter.list("v1") == before


@pytest.mark.ray
@pytest.mark.slow
@pytest.mark.usefixtures("ray_here")
def test_workers_of_ray_read_upstream(public, own):
    result = run(public, own, where="local")

    assert sorted(result.own) == ["longest"]


def test_a_waiver_on_what_is_upstream_is_written_here(public, own):
    from pipeline.planning.accept import accept_step, last_definition  # noqa: PLC0415 - only here

    public.edit("words.py", "if word]", "if word.strip()]")
    found = plan(public, own)

    accept_step(found, "count", last_definition(found, "count"), reason="only a refactoring")

    assert states(plan(public, own, everything=True))["count"] == "cached"
    assert own.adapter.read("seaglass.json") is not None


# ------------------------------------------------------------------------------ the command line


@pytest.fixture
def outsider(public, seaglass, monkeypatch):
    """The command over a store of one's own."""
    monkeypatch.setenv("SEAGLASS_STORE", str(public.root / "own"))
    return seaglass


@pytest.fixture
def recipe(public):
    return [f"{public.name}.recipe", "--set", f"path={public.text}"]


@pytest.fixture
def upstream(public, monkeypatch):
    monkeypatch.setenv("SEAGLASS_FROM", public.store.url)
    return public.store.url


def test_run_takes_stores_by_option(outsider, recipe, public):
    answer = outsider("run", *recipe, "--from", public.store.url, "--on", "inline", "--json")

    assert answer.json["ran"] == ["longest"]


def test_the_next_commands_name_the_stores_that_were_typed(outsider, recipe, public):
    text = outsider("run", *recipe, "--from", public.store.url, "--on", "inline").out

    assert f"lineage longest --up --from {public.store.url}" in text
    assert "--store" not in text.partition("Next:")[2]


def test_plan_takes_stores_from_the_environment(outsider, recipe, upstream):
    answer = outsider("plan", *recipe, "--json").json

    assert answer["upstream"] == [upstream]
    assert [s["step"] for s in answer["steps"] if s["state"] == "run"] == ["longest"]


def test_ls_shows_which_names_are_upstream(outsider, recipe, upstream, public):
    outsider("run", *recipe, "longest", "--on", "inline")

    rows = {row["name"]: row["store"] for row in outsider("ls", "--json").json}
    screen = outsider("ls").out

    assert rows == {
        "read": str(public.root / "own"),
        "count": str(public.root / "own"),
        "longest": str(public.root / "own"),
        "total": str(public.root / "own"),
    }
    assert screen.splitlines()[0] == str(public.root / "own")


def test_ls_lists_names_and_runs_upstream(outsider, upstream):
    names = outsider("ls", "--json").json
    runs = outsider("ls", "--runs", "--json").json

    assert {row["name"]: row["store"] for row in names} == dict.fromkeys(
        ["read", "count", "total"], upstream
    )
    assert [row["store"] for row in runs] == [upstream]


def test_show_tells_the_store_of_an_artifact_and_of_a_run(outsider, upstream):
    run_id = outsider("ls", "--runs", "--json").json[0]["run"]

    artifact = outsider("show", "total", "--json").json
    events = outsider("show", run_id, "--json").json["events"]

    assert artifact["store"] == upstream
    assert artifact["summary"]["title"] == "Words"
    assert events[0]["kind"] == "run_started"


def test_lineage_crosses_into_the_store_upstream(outsider, recipe, upstream):
    outsider("run", *recipe, "--on", "inline")

    tree = outsider("lineage", "longest").out

    assert ["longest" in tree, "count" in tree, "read" in tree, "a.txt" in tree] == [True] * 4


def test_a_rerun_of_a_step_upstream_is_compared_and_kept_here(outsider, recipe, upstream, public):
    answer = outsider("rerun", *recipe, "count", "--on", "inline", "--json")

    assert answer.json["steps"][0]["reproduced"]
    assert len(open_store(str(public.root / "own")).adapter.list("v1/locations")) == 1
