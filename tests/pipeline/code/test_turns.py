"""Where a statement stands counts if what it takes at import changes on the way, and only then."""

from textwrap import dedent

import pytest

# Two statements to swap, among others; the body uses the last name that they bind.
MOVED = {
    "a default": ("LIMIT = 20", "def keep(n, limit=LIMIT):\n    return n < limit", "keep(1)"),
    "a class attribute": ("LIMIT = 20", "class Row:\n    limit = LIMIT", "Row.limit"),
    "a base": ("class Base: x = 2", "class Row(Base):\n    pass", "Row.x"),
    "an argument of partial": ("LIMIT = 20", "keep = partial(max, LIMIT)", "keep(1)"),
    "an argument of a decorator": ("LIMIT = 20", "@wrap(LIMIT)\ndef keep(): pass", "keep()"),
    "a copy of a list": ("L.append(2)", "T = tuple(L)", "T"),
    "a length": ("L[0:0] = [3]", "N = len(L)", "N"),
    "another name": ("LIMIT += 1", "C = LIMIT", "C"),
    "a name that a lambda reads at once": ("LIMIT = 20", "C = max(L, key=lambda x: LIMIT)", "C"),
    "an imported object": ("other.X = 2", "Y = other.X", "Y"),
}
HEAD = """
from functools import partial
from lab import other
from lab.wrapping import wrap

L = [1]
LIMIT = 10
class Base: x = 1
"""
REST = {
    "lab/__init__.py": "",
    "lab/other.py": "X = 1\n",
    "lab/wrapping.py": "def wrap(x):\n    return lambda f: f\n",
}


def module(*statements, use):
    body = f"def run(config, inputs, output):\n    return {use}\n"
    return REST | {"lab/body.py": "\n\n".join([HEAD, *statements, body])}


@pytest.mark.parametrize("what", MOVED)
def test_a_statement_that_moves_past_a_change_of_what_it_takes_counts(follow, what):
    change, reader, use = MOVED[what]

    before = follow(module(change, reader, use=use))
    after = follow(module(reader, change, use=use))

    assert before.digest != after.digest


STILL = {
    "a function that reads it when it is called": ("L.append(2)", "def run2():\n    return L"),
    "a statement that takes something else": ("L.append(2)", "C = LIMIT"),
    "a constant": ("A = 1", "B = 2"),
    "a default that is bound once": ("A = 1", "def run2(x=LIMIT):\n    return x"),
}


@pytest.mark.parametrize("what", STILL)
def test_other_statements_may_be_moved(follow, what):
    one, two = STILL[what]
    use = "run2()" if "run2" in two else two.split(" ")[0]

    before = follow(module(one, two, use=use))
    after = follow(module(two, one, use=use))

    assert before.digest == after.digest


def test_blank_lines_and_comments_move_nothing(follow):
    change, reader, use = MOVED["a default"]
    files = module(change, reader, use=use)
    text = dedent(files["lab/body.py"])

    spread = files | {"lab/body.py": text.replace("\n\n", "\n\n\n# nothing\n\n")}

    assert follow(spread).digest == follow(files).digest
