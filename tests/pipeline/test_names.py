"""Names from outside: never a path unescaped, never two names for one thing."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.asking.artifacts import find_record
from pipeline.errors import RecipeError, StoreError, UsageError
from pipeline.folder import FolderOutput
from pipeline.paths import checked_label, checked_path
from pipeline.step import Step
from pipeline.store import layout
from pipeline.store.adapter import checked_key
from pipeline.store.files import AttemptFiles

WILD = {
    "a way out": "../../etc/x",
    "an absolute path": "/etc/passwd",
    "a dot": ".",
    "two dots": "..",
    "a temporary file": ".tmp-1",
    "composed": "caf\u00e9",
    "an emoji": "\N{ROCKET}",
    "right to left": "\u05e9\u05dc\u05d5\u05dd",
    "a thousand characters": "x" * 1_000,
    "a thousand emoji": "\N{ROCKET}" * 250,
    "reserved on Windows": "con",
    "a wildcard": "*?",
    "a backslash": "a\\b",
    "a colon": "a:b",
    "a percent sign": "a%2Fb",
    "a tilde": "~root",
    "an equals sign": "a=b",
    "a space within": "a b",
    "quotes": "a'b\"c",
    "markup": "[red]x[/red]",
    "a dollar": "$HOME",
}


@pytest.mark.parametrize("what", WILD)
def test_a_wild_name_becomes_one_part_of_a_key(what):
    prefix = layout.refs(WILD[what])

    assert checked_key(prefix) == prefix
    assert prefix.count("/") == 2
    assert all(len(part) <= 200 for part in prefix.split("/"))


@pytest.mark.parametrize("what", WILD)
def test_a_wild_name_is_found_again_in_the_store(what, store, tmp_path):
    store.add_ref(WILD[what], {"value": 1})

    found = store.ref(WILD[what])

    assert found is not None
    assert found["value"] == 1
    assert [p.name for p in tmp_path.iterdir()] == ["store"]


def test_no_two_wild_names_share_a_key():
    assert len({layout.refs(name) for name in WILD.values()}) == len(WILD)


def test_two_encodings_of_one_name_are_one_name(store):
    store.add_ref("cafe\u0301", {"value": 1})

    assert layout.refs("cafe\u0301") == layout.refs("caf\u00e9")
    assert store.ref("caf\u00e9") is not None


NAMES = st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1, max_size=400)


@given(NAMES, NAMES)
def test_two_names_never_share_a_key(one, other):
    same = layout.checked_name(one) == layout.checked_name(other)

    assert (layout.refs(one) == layout.refs(other)) == same


@given(NAMES)
def test_a_name_that_looks_like_a_shortened_one_does_not_share_its_key(name):
    shortened = layout.refs("x" * 500 + name).rsplit("/", 1)[1]

    assert layout.refs(shortened[1:]) != layout.refs("x" * 500 + name)


@given(NAMES)
def test_every_name_makes_a_key_of_our_own_making(name):
    checked_key(layout.refs(name))
    checked_key(layout.data("20260102T030405-0123456789abcdef", f"files/{name}"))
    checked_key(layout.events("20260102T030405-0123456789abcdef", name, 0))


@pytest.mark.parametrize("name", ["", "a\nb", "a\x00b", "a\u202eb", "\ud800", "x" * 5_000])
def test_a_name_that_cannot_be_shown_is_refused(name):
    with pytest.raises(UsageError, match="printable characters"):
        layout.checked_name(name)


@pytest.mark.parametrize("name", ["", " a", "a ", "a\tb", "a@b", "run/x", "x" * 1_001, "\u200d"])
def test_a_label_that_could_not_be_typed_again_is_refused(name):
    with pytest.raises(UsageError, match="name "):
        checked_label(name)


def test_a_label_is_held_in_one_encoding():
    assert Step("count", "lab.body:run", label="cafe\u0301").title == "count-caf\u00e9"


GOOD_PATHS = ["a", "a/b.txt", "\u05e9\u05dc/\N{ROCKET}.json", "caf\u00e9", "x" * 200, "a b", "-"]
BAD_PATHS = {
    "": "is empty",
    "/a": "has the part ''",
    "a//b": "has the part ''",
    "a/": "has the part ''",
    "../../etc/x": "has the part '..'",
    "a/./b": "has the part '.'",
    "a\\b": "a backslash",
    "c:a": "a colon",
    "a\nb": "unprintable",
    "a\u202eb": "unprintable",
    "a\ud800": "unprintable",
    "cafe\u0301": "not in Unicode NFC",
    "x" * 201: "longer than 200 bytes",
    "\N{ROCKET}" * 51: "longer than 200 bytes",
    "con": "some systems reserve",
    "a/NUL.txt": "some systems reserve",
    "com1.tar.gz": "some systems reserve",
    "aux .txt": "some systems reserve",
    "COM\u00b9": "some systems reserve",
    "conin$": "some systems reserve",
    "a.": "ends in a dot or space",
    "a ": "ends in a dot or space",
}


@pytest.mark.parametrize("path", GOOD_PATHS)
def test_a_plain_path_passes(path, store):
    assert checked_path(path) == path
    assert checked_key(layout.data("attempt", f"files/{path}"))


@pytest.mark.parametrize("path", BAD_PATHS)
def test_a_path_that_means_something_elsewhere_is_refused(path, store, tmp_path):
    files = AttemptFiles(store, "attempt")

    with pytest.raises(UsageError) as refusal:
        checked_path(path)
    with pytest.raises(UsageError), files.open(path):
        pass
    with pytest.raises(UsageError), FolderOutput(tmp_path).open(path):
        pass

    assert BAD_PATHS[path] in str(refusal.value)


@pytest.mark.parametrize(
    "key", ["", "/a", "a//b", "../a", "a/../b", "a/.b", "a b", "a\n", "\u00e9"]
)
def test_a_key_that_is_not_of_our_own_making_is_refused(key):
    with pytest.raises(StoreError, match="must match"):
        checked_key(key)


@pytest.mark.parametrize("role", ["", "../x", "Left", "caf\u00e9", "a b", "con.txt"])
def test_a_role_that_is_no_name_is_refused(role):
    with pytest.raises(RecipeError, match="must match"):
        Step("count", "lab.body:run", inputs={role: Step("read", "lab.body:run")})


def is_plain(name):
    """Whether a name is a file path too, as the key of a state must be."""
    with suppress(UsageError):
        return bool(checked_path(name))
    return False


WILD_RECIPE = """
    from PACKAGE.steps import count, read, total

    NAMES = {names!r}


    def dag(path: str):
        counts = {{name: count(read(path), label=name) for name in NAMES}}
        return {{name: total(counts[name]) for name in NAMES}}
    """
WILD_BODY = """
    from pipeline.errors import UsageError


    def keep(config, shard, inputs, output):
        output.write_bytes(f"{{len(shard)}}/{{hash(shard)}}.txt", shard.encode())


    def total(config, inputs, output):
        names = {names!r}
        output.map_shards(keep, names)
        state = output.scratch / "state.bin"
        state.write_bytes(b"state")
        for name in {plain!r}:
            output.save_state(name, {{"state.bin": state}}, name)
        for name in sorted(set(names) - set({plain!r})):
            try:
                output.save_state(name, {{"state.bin": state}}, name)
            except UsageError:
                continue
            raise AssertionError(name)
        output.write_json("names.json", [state.key for state in output.states()])
    """


def test_wild_names_of_steps_targets_shards_and_states_stay_in_the_store(make_project, tmp_path):
    project = make_project({"recipe.py": WILD_RECIPE.format(names=list(WILD.values()))})
    project.edit("steps.py", "def count(text, smallest=1", "def count(text, smallest=1, label=None")
    project.edit("steps.py", "resources=resources)", "resources=resources, label=label)")
    plain = [name for name in WILD.values() if is_plain(name)]
    project.write({"wild.py": WILD_BODY.format(names=list(WILD.values()), plain=plain)})
    project.edit("steps.py", "bodies:total", "wild:total")
    before = sorted(tmp_path.iterdir())

    result = project.run()

    assert result.is_good, result.failures
    for name in WILD.values():
        assert find_record(project.store, name).name == "total"
        assert find_record(project.store, f"count-{name}@latest").name == "count"
    assert all(checked_key(key) for key in project.store.adapter.list("v1"))
    assert sorted(tmp_path.iterdir()) == sorted([*before, tmp_path / "store"])


@pytest.mark.parametrize("one", ["README", "\u00c9t\u00e9", "a%2Fb", "~x"])
def test_two_names_that_differ_in_case_alone_are_two_on_every_disk(one):
    other = one.swapcase()

    assert layout.refs(one).lower() != layout.refs(other).lower()
    assert layout.data("a", one).lower() != layout.data("a", other).lower()
