"""What runs at import counts for everything that loads the module; nothing else does."""

import pytest

EFFECTS = {
    "an object as decorator": (
        "class Keeper:\n    def __call__(self, f): self.kept = f\n\n\nkeep = Keeper()\n\n\n"
        "@keep\ndef thing():\n    return {}"
    ),
    "a call": "setup({})",
    "an if": "if True:\n    y = {}",
    "a for": "for i in range({}):\n    pass",
    "a with": "with open('x') as f:\n    z = {}",
    "a try": "try:\n    y = {}\nexcept OSError:\n    y = 0",
    "an augmented assignment": "x = 0\nx += {}",
    "an attribute assignment": "setup.level = {}",
    "an item assignment": "x = [0]\nx[0] = {}",
    "a deletion": "x = [0, 1]\ndel x[{}]",
    "an assertion": "assert {} < 9",
    "a registering decorator": (
        "REGISTRY = {{}}\n\n\ndef register(f):\n    REGISTRY[f] = 1\n\n\n"
        "@register\ndef thing():\n    return {}"
    ),
    "a decorator that fills a table": (
        "TABLE = []\n\n\ndef keep(f):\n    TABLE.append(f)\n    return f\n\n\n"
        "@keep\ndef thing():\n    return {}"
    ),
    "a decorator that fills a table in a second function": (
        "TABLE = []\n\n\ndef store(f):\n    TABLE.append(f)\n\n\n"
        "def keep(f):\n    store(f)\n    return f\n\n\n@keep\ndef thing():\n"
        "    return {}"
    ),
    "a decorator factory that fills a table": (
        "T = {{}}\n\n\ndef named(name):\n    def keep(f):\n"
        "        T[name] = f\n        return f\n    return keep\n\n\n"
        "@named('a')\ndef thing():\n    return {}"
    ),
    "a method as decorator": (
        "class App:\n    def command(self, f): pass\n\n\napp = App()\n\n\n"
        "@app.command\ndef thing():\n    return {}"
    ),
    "an implementation of a singledispatch function": (
        "from functools import singledispatch\n\n\n@singledispatch\n"
        "def show(x): pass\n\n\n@show.register\ndef _(x: int):\n    return {}"
    ),
    "a subclass that announces itself": (
        "class Base:\n    def __init_subclass__(cls): pass\n\n\nclass Thing(Base):\n    value = {}"
    ),
    "a subclass of a first-party metaclass's class": (
        "class Meta(type): pass\n\n\nclass Base(metaclass=Meta): pass\n\n\n"
        "class Thing(Base):\n    value = {}"
    ),
    "an assigned call that fills a table": (
        "TABLE = []\n\n\ndef put(f):\n    TABLE.append(f)\n\n\n_ = put({})"
    ),
}
NO_EFFECTS = {
    "a library's decorator under a name of our own": (
        "from numba import njit\n\n\nfast = njit(cache=True)\n\n\n@fast\ndef f(): return {}"
    ),
    "a constant": "x = {}",
    "an assigned call": "x = sorted([{}])",
    "a function": "def f():\n    return {}",
    "a class": "class C:\n    x = {}",
    "a subclass": "class B: pass\n\n\nclass C(B):\n    x = {}",
    "a decorated function": "from functools import cache\n\n\n@cache\ndef f():\n    return {}",
    "a first-party wrapper": (
        "def twice(f):\n    return lambda: f() * 2\n\n\n@twice\ndef f():\n    return {}"
    ),
    "an overload": "from typing import overload\n\n\n@overload\ndef f(x: int): return {}",
    "text": "'{}'",
    "a type-checking block": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    x = {}",
    "a main block": "if __name__ == '__main__':\n    print({})",
    "an unpacking": "a, (b, *c) = [{}, (2, 3)]",
    "a test in an unused function": "def f():\n    assert {}",
}
BODIES = {
    "in its own module": {"lab/body.py": "{}\n\n\ndef run(): pass\n"},
    "in an imported module": {
        "lab/body.py": ("import lab.other\n\n\ndef run(): pass\n"),
        "lab/other.py": "{}\n",
    },
    "in a module imported by an imported one": {
        "lab/body.py": ("from lab import mid\n\n\ndef run(): pass\n"),
        "lab/mid.py": "from lab.other import *\n",
        "lab/other.py": "{}\n",
    },
    "in a parent package": {"lab/body.py": "def run(): pass\n", "lab/__init__.py": "{}\n"},
    "in a module imported by the function": {
        "lab/body.py": "def run():\n    import lab.other\n",
        "lab/other.py": "{}\n",
    },
}


def with_value(where, statements, value):
    filled = statements.format(value)
    return {path: text.replace("{}", filled) for path, text in BODIES[where].items()}


@pytest.mark.parametrize("what", EFFECTS)
def test_a_statement_that_runs_at_import_counts(follow, what):
    before = follow(with_value("in its own module", EFFECTS[what], 1))

    after = follow(with_value("in its own module", EFFECTS[what], 2))

    assert before.digest != after.digest
    assert "lab.body:<top level>" in before.symbols


@pytest.mark.parametrize("what", NO_EFFECTS)
def test_a_definition_that_nobody_uses_does_not_count(follow, what):
    before = follow(with_value("in its own module", NO_EFFECTS[what], 1))

    after = follow(with_value("in its own module", NO_EFFECTS[what], 2))

    assert before.digest == after.digest


@pytest.mark.parametrize("where", BODIES)
def test_effects_count_in_every_module_that_is_loaded(follow, where):
    before = follow(with_value(where, EFFECTS["a call"], 1))

    after = follow(with_value(where, EFFECTS["a call"], 2))

    assert before.digest != after.digest


def test_effects_of_a_module_that_is_not_loaded_do_not_count(follow):
    files = {"lab/body.py": "def run(): pass\n", "lab/other.py": "setup({})\n"}
    before = follow(files)

    after = follow({**files, "lab/other.py": "setup(2)\n"})

    assert before.digest == after.digest


def test_what_an_effect_uses_counts(follow):
    text = "def setup(): return {}\n\n\nsetup()\n\n\ndef run(): pass\n"
    before = follow({"lab/body.py": text.format(1)})

    after = follow({"lab/body.py": text.format(2)})

    assert before.symbols.keys() == {"lab.body:run", "lab.body:setup", "lab.body:<top level>"}
    assert before.digest != after.digest
