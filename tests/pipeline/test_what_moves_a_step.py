"""From an edit to plan and run: exactly the steps that use it run, and the plan names it."""

import os
import shutil
from dataclasses import replace

import pytest

from pipeline.digests import RememberedDigests
from pipeline.errors import EncodingError
from pipeline.planning.plan import make_plan
from pipeline.recipes import load_recipe
from pipeline.store.local import LocalAdapter
from pipeline.store.store import Store

# Every edit below leaves the bytes of `count` as they are, so that nothing after it may run.
WORDS = """
    import click

    from PACKAGE.deep import scaled

    SEPARATOR = " "


    def counted(function):
        def call(*args, **kwargs):
            return function(*args, **kwargs)

        return call


    class Splitter:
        def split(self, text, separator):
            return text.split(separator)


    def adder(amount):
        def add(x):
            return x + amount

        return add


    add_nothing = adder(0)


    @counted
    def words(text, separator=SEPARATOR, limit=None):
        # One comment.
        found = Splitter().split(click.unstyle(text), separator)
        return found[: add_nothing(scaled(len(found)))]
    """
DEEP = """
    from PACKAGE.deeper import FACTOR


    def scaled(x):
        return int(x * FACTOR)
    """
EDITS = {
    "a helper": ("words.py", "add_nothing(scaled(", "scaled(add_nothing(", "words:words"),
    "a default": ("words.py", "limit=None", "limit=0", "words:words"),
    "a class method": ("words.py", "return text.s", "return 0 or text.s", "words:Splitter"),
    "a decorator": ("words.py", "return function(", "return 0 or function(", "words:counted"),
    "a module constant": ("words.py", 'SEPARATOR = " "', "SEPARATOR = chr(32)", "words:SEPARATOR"),
    "a closure cell": ("words.py", "adder(0)", "adder(int())", "words:add_nothing"),
    "a transitive import": ("deeper.py", "FACTOR = 1", "FACTOR = 1.0", "deeper:FACTOR"),
    "the body": ("bodies.py", ">= config.smallest", ">= 0 + config.smallest", "bodies:count"),
}
NO_EDITS = {
    "a comment": ("words.py", "# One comment.", "# Another.\n        # And more."),
    "a docstring": ("words.py", "# One comment.", '"""Words."""'),
    "the formatting": ("words.py", "limit=None):", "limit=(None),\n):"),
    "a plain annotation": ("words.py", "def words(text,", "def words(text: str,"),
    "an annotation of a local": ("words.py", "found = S", "found: list[str] = S"),
    "resources": ("steps.py", "resources=resources)", "resources=Resources(cpus=9, gpus=1))"),
    "an environment": (
        "steps.py",
        "resources=resources)",
        "resources=Resources(environment={'AWS_REGION': 'eu-west-1'}))",
    ),
    "a label": ("steps.py", "resources=resources)", "resources=resources, label='b')"),
    "an unused function": ("deeper.py", "FACTOR = 1", "FACTOR = 1\n\n\ndef unused(): pass"),
}


@pytest.fixture
def lab(make_project):
    """A project whose `count` uses code in every way, and has run."""
    project = make_project({"words.py": WORDS, "deep.py": DEEP, "deeper.py": "FACTOR = 1\n"})
    project.run()
    return project


@pytest.mark.parametrize("what", EDITS)
def test_an_edit_runs_the_step_that_uses_it_and_is_named(lab, what):
    path, old, new, symbol = EDITS[what]
    lab.edit(path, old, new)

    causes = lab.causes()["count"]
    ran = lab.run().own

    assert causes == (f"code: {lab.name}.{symbol} changed",)
    assert list(ran) == ["count"]


@pytest.mark.parametrize("what", NO_EDITS)
def test_what_means_nothing_runs_nothing(lab, what):
    lab.edit(*NO_EDITS[what])

    assert lab.causes() == {}
    assert lab.run().own == {}


def test_a_locked_version_moves_the_step_that_uses_the_library(make_project, monkeypatch):
    project = make_project({"words.py": WORDS, "deep.py": DEEP, "deeper.py": "FACTOR = 1\n"})
    monkeypatch.chdir(project.root)
    project.run()
    (project.root / "constraints.txt").write_text("click==0.1+cpu\nrich==0.1\n", encoding="utf-8")

    causes = project.causes()

    (cause,) = causes.pop("count")
    assert cause.startswith("code: click ")
    assert cause.endswith(" -> 0.1")
    assert list(causes) == ["total"]
    assert "equal bytes would stop it here" in causes["total"][0]


def test_a_field_that_an_annotation_makes_counts_and_is_named(lab):
    lab.edit("steps.py", "smallest: int = 1", "smallest: int = 1\n    largest: int = 9")

    assert lab.causes()["count"] == ("config largest: added as 9",)
    assert list(lab.run().own) == ["count"]


def test_the_place_of_the_repository_is_no_cause(lab, monkeypatch):
    root = lab.root / "elsewhere"
    shutil.copytree(lab.root / lab.name, root / lab.name)
    shutil.copytree(lab.text, root / "text")
    monkeypatch.syspath_prepend(str(root))
    moved = replace(lab, root=root)

    plan = moved.plan(everything=True)

    assert plan.codebase.roots[lab.name] == root / lab.name
    assert plan.resolution.misses == set()


def test_the_root_of_the_store_moves_no_digest(lab):
    other = replace(lab, store=Store(LocalAdapter(lab.root / "other")))

    here, there = lab.plan(everything=True), other.plan(everything=True)

    assert here.identity.recipe_digests == there.identity.recipe_digests


VALUES = ["float('nan')", "lambda: 1", "open(__file__)", "datetime.datetime(2026, 1, 2)"]


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # the file that is refused stays open
@pytest.mark.parametrize("value", VALUES)
def test_a_value_without_exact_form_is_refused_with_its_path(make_project, value):
    project = make_project()
    project.edit("steps.py", "longest: int = 100", "longest: object = 100")
    project.edit("steps.py", "smallest=smallest)", f"limits=Limits(longest={value}))")
    project.edit("steps.py", "from dataclasses", "import datetime\nfrom dataclasses")

    with pytest.raises(EncodingError, match=r"^count\.config\.limits\.longest is "):
        project.plan()


def planned(project):
    """How many files a plan hashes, and the steps that would run with their causes."""
    project.forget()
    recipe = load_recipe(f"{project.name}.recipe", [f"path={project.text}"])
    digests = RememberedDigests(project.root / "cache")
    steps = make_plan(recipe, project.store, digests, everything=True).steps
    return digests.num_hashed, {s.title: s.causes for s in steps if s.state == "run"}


@pytest.fixture
def settled(lab, monkeypatch):
    """A project whose source files changed long ago, so that their digests are remembered."""
    monkeypatch.setattr("pipeline.digests._CARE_S", -1)
    assert planned(lab)[1] == {}
    return lab


def test_a_touch_of_a_source_hashes_that_file_alone_and_runs_nothing(settled):
    os.utime(settled.text / "a.txt")

    assert planned(settled) == (1, {})


def test_an_edit_of_a_source_that_keeps_size_and_mtime_is_named(settled):
    file = settled.text / "a.txt"
    before = file.stat()
    file.write_text("one owt", encoding="utf-8")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))

    num_hashed, causes = planned(settled)

    assert (num_hashed, causes["read"]) == (1, ("source text: a.txt changed",))
    assert list(settled.run().own) == ["read", "count"]


def test_a_source_that_moved_to_another_commit_is_named_with_its_files(lab):
    at = "files=tuple(files), provenance={{'commit': '{}'}}"
    lab.edit("resolver.py", "files=tuple(files)", at.format("1" * 40))
    (lab.text / "a.txt").write_text("one", encoding="utf-8")
    lab.run()
    lab.edit("resolver.py", "1" * 40, "2" * 40)
    (lab.text / "a.txt").write_text("two", encoding="utf-8")

    assert lab.causes()["read"] == (
        "source text: moved from commit 111111111111 to 222222222222",
        "source text: a.txt changed",
    )


def test_a_commit_of_a_source_alone_is_a_hit(lab):
    lab.edit("resolver.py", "files=tuple(files)", "files=tuple(files), provenance={'commit': 'a'}")

    assert lab.causes() == {}


def test_a_config_that_differs_only_where_it_is_masked_says_so(make_project):
    project = make_project()
    project.edit("steps.py", "longest: int = 100", 'longest: str = "https://ann:first@host"')
    project.run()
    project.edit("steps.py", "ann:first", "ann:second")

    (cause,) = project.causes()["count"]

    assert cause.startswith("config changed where it is masked")


def test_a_method_of_a_named_tuple_in_a_config_counts(make_project):
    project = make_project()
    named = (
        "import NamedTuple\n\n\nclass Span(NamedTuple):\n    first: int = 1\n\n    def last(self):"
    )
    project.edit(
        "steps.py", "import ClassVar", f"import ClassVar\nfrom typing {named}\n        return 1"
    )
    project.edit("steps.py", "longest: int = 100", "longest: Span = Span()")
    project.run()
    project.edit("steps.py", "        return 1", "        return 2")

    assert project.causes()["count"][0] == f"code: {project.name}.steps:Span changed"
