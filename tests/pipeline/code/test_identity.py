"""What moves a code digest and what does not, as the identity of a step demands it."""

from textwrap import dedent

import pytest

from pipeline.code import explain_change

BODY = dedent("""
    from dataclasses import dataclass

    from lab import shapes
    from lab.deep import SCALE, scaled
    from lab.marks import counted

    LIMIT = 3


    def helper(x, *, step=1):
        return x + step


    @counted
    def decorated(x):
        return x


    class Walker:
        def move(self):
            return 1


    @dataclass(frozen=True, kw_only=True)
    class Row:
        width: int
        height: int = 2


    def adder(amount):
        def add(x):
            return x + amount

        return add


    add_two = adder(2)


    def run(config, inputs, output):
        # a comment
        rows = [Row(width=helper(x)) for x in range(LIMIT)]
        total = add_two(decorated(len(rows))) + Walker().move()
        return scaled(total) + shapes.area(SCALE)


    def other(config, inputs, output):
        return helper(1)
""")
FILES = {
    "lab/__init__.py": "",
    "lab/body.py": BODY,
    "lab/deep.py": dedent("""
        from lab.deeper import FACTOR

        SCALE = 10


        def scaled(x):
            return x * FACTOR
    """),
    "lab/deeper.py": "FACTOR = 7\nUNUSED = 1\n",
    "lab/marks.py": dedent("""
        def counted(function):
            return lambda x: function(x) + 1
    """),
    "lab/shapes.py": dedent("""
        import numpy as np


        def area(x):
            return np.square(x)


        def volume(x):
            return x**3
    """),
}
VERSIONS = {"numpy": "2.2.0"}


def changed(path, old, new):
    """The files with one replacement that must apply."""
    assert old in FILES[path]
    return {**FILES, path: FILES[path].replace(old, new)}


CHANGES = {
    "a helper": ("lab/body.py", "return x + step", "return x - step", "lab.body:helper changed"),
    "a default": ("lab/body.py", "step=1", "step=2", "lab.body:helper changed"),
    "a class method": ("lab/body.py", "return 1", "return 2", "lab.body:Walker changed"),
    "a constant": ("lab/body.py", "LIMIT = 3", "LIMIT = 4", "lab.body:LIMIT changed"),
    "a constant's type": ("lab/body.py", "LIMIT = 3", "LIMIT = 3.0", "lab.body:LIMIT changed"),
    "a closure cell": ("lab/body.py", "adder(2)", "adder(3)", "lab.body:add_two changed"),
    "a decorator": ("lab/marks.py", "+ 1", "+ 2", "lab.marks:counted changed"),
    "a transitive import": (
        "lab/deeper.py",
        "FACTOR = 7",
        "FACTOR = 8",
        "lab.deeper:FACTOR changed",
    ),
    "a default of a field": (
        "lab/body.py",
        "height: int = 2",
        "height: int = 3",
        "lab.body:Row changed",
    ),
    "a new field by annotation": (
        "lab/body.py",
        "width: int",
        "width: int\n    depth: int",
        "lab.body:Row changed",
    ),
    "the type of a field": ("lab/body.py", "width: int", "width: float", "lab.body:Row changed"),
    "a removed decorator": ("lab/body.py", "@counted", "", "lab.body:decorated changed"),
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_change_of_used_code_moves_the_digest_and_is_named(follow, what):
    path, old, new, cause = CHANGES[what]
    before = follow(FILES, versions=VERSIONS)

    after = follow(changed(path, old, new), versions=VERSIONS)

    assert before.digest != after.digest
    assert cause in explain_change(before, after)


@pytest.mark.parametrize("what", [w for w in CHANGES if w not in {"a helper", "a default"}])
def test_a_change_moves_no_body_that_does_not_use_it(follow, what):
    path, old, new, _ = CHANGES[what]
    before = follow(FILES, "lab.body:other", VERSIONS)

    after = follow(changed(path, old, new), "lab.body:other", VERSIONS)

    assert before.digest == after.digest


def test_a_locked_version_of_a_used_library_counts_and_is_named(follow):
    before = follow(FILES, versions={"numpy": "2.2.0"})

    after = follow(FILES, versions={"numpy": "2.3.0"})

    assert explain_change(before, after) == ["numpy 2.2.0 -> 2.3.0"]
    assert before.digest != after.digest


def test_a_locked_version_moves_no_body_whose_symbols_do_not_use_the_library(follow):
    before = follow(FILES, "lab.body:other", {"numpy": "2.2.0"})

    after = follow(FILES, "lab.body:other", {"numpy": "2.3.0"})

    assert before.digest == after.digest
    assert before.distributions == {}


def test_a_local_version_part_does_not_count(follow):
    laptop = follow(FILES, versions={"numpy": "2.2.0+cpu"})

    cluster = follow(FILES, versions={"numpy": "2.2.0"})

    assert laptop.digest == cluster.digest


SAME = {
    "a comment": ("lab/body.py", "# a comment", "# another\n    # and more"),
    "a removed comment": ("lab/body.py", "    # a comment\n", ""),
    "a docstring of a function": (
        "lab/body.py",
        "def helper(x, *, step=1):",
        ('def helper(x, *, step=1):\n    """Add."""\n'),
    ),
    "a docstring of a class": ("lab/body.py", "class Walker:", 'class Walker:\n    """Walks."""\n'),
    "a docstring of a module": ("lab/deep.py", "from lab.deeper", '"""Deep."""\nfrom lab.deeper'),
    "blank lines": ("lab/body.py", "return x + step", "\n\n    return x + step\n\n"),
    "redundant parentheses": ("lab/body.py", "return x + step", "return (x + step)"),
    "a line break": (
        "lab/body.py",
        "return x + step",
        ("return (\n        x\n        + step\n    )"),
    ),
    "a trailing comma": ("lab/body.py", "scaled(total)", "scaled(total,)"),
    "annotations of a function": (
        "lab/body.py",
        "def helper(x, *, step=1):",
        ("def helper(x: int, *, step: int = 1) -> int:"),
    ),
    "an annotation of a local": ("lab/body.py", "rows = [", "rows: list[Row] = ["),
    "a bare annotation of a local": ("lab/body.py", "rows = [", "rows: list\n    rows = ["),
    "an annotation of a constant": ("lab/body.py", "LIMIT = 3", "LIMIT: int = 3"),
    "an annotation of a method": ("lab/body.py", "def move(self):", "def move(self) -> int:"),
    "an unused constant": ("lab/deeper.py", "UNUSED = 1", "UNUSED = 2"),
    "an unused function": ("lab/shapes.py", "return x**3", "return x**4"),
    "an unused import": (
        "lab/body.py",
        "from lab import shapes",
        "import json\nfrom lab import shapes",
    ),
    "the order of imports": (
        "lab/body.py",
        ("from lab import shapes\nfrom lab.deep import SCALE, scaled"),
        ("from lab.deep import scaled, SCALE\nfrom lab import shapes"),
    ),
    "imports for type checkers": (
        "lab/body.py",
        "LIMIT = 3",
        (
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n"
            "    from nowhere import Nothing\nLIMIT = 3"
        ),
    ),
    "__all__": ("lab/body.py", "LIMIT = 3", '__all__ = ["run"]\nLIMIT = 3'),
    "a script's main block": (
        "lab/body.py",
        "LIMIT = 3",
        ('LIMIT = 3\nif __name__ == "__main__":\n    run(1, 2, 3)'),
    ),
    "a stray pass": ("lab/body.py", "rows = [", "pass\n    rows = ["),
    "Windows line ends": ("lab/body.py", "\n", "\r\n"),
}


@pytest.mark.parametrize("what", SAME)
def test_what_cannot_change_a_result_does_not_move_the_digest(follow, what):
    before = follow(FILES, versions=VERSIONS)

    after = follow(changed(*SAME[what]), versions=VERSIONS)

    assert explain_change(before, after) == []
    assert before.digest == after.digest


def test_the_place_of_the_repository_does_not_count(make_tree, follow):
    digests = {follow(FILES, versions=VERSIONS).digest for _ in range(2)}

    assert len(digests) == 1


def test_a_moved_symbol_counts(follow):
    before = follow(FILES, versions=VERSIONS)
    files = {
        **changed(
            "lab/body.py",
            "from lab.deep import SCALE,",
            "from lab.scale import SCALE\nfrom lab.deep import",
        )
    }

    after = follow({**files, "lab/scale.py": "SCALE = 10\n"}, versions=VERSIONS)

    assert explain_change(before, after)[-2:] == ["lab.scale:SCALE added", "lab.deep:SCALE removed"]


def test_the_symbols_are_exactly_those_that_the_body_uses(follow):
    found = follow(FILES, versions=VERSIONS)

    assert set(found.symbols) == {
        "lab.body:LIMIT",
        "lab.body:Row",
        "lab.body:Walker",
        "lab.body:add_two",
        "lab.body:adder",
        "lab.body:decorated",
        "lab.body:helper",
        "lab.body:run",
        "lab.deep:SCALE",
        "lab.deep:scaled",
        "lab.deeper:FACTOR",
        "lab.marks:counted",
        "lab.shapes:area",
    }
    assert found.notices == ()


def test_the_modules_are_all_that_importing_the_body_loads(follow):
    found = follow(FILES, versions=VERSIONS)

    names = {"lab", "lab.body", "lab.deep", "lab.deeper", "lab.marks", "lab.shapes"}
    assert set(found.modules) == names
