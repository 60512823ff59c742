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
PUT = "TABLE = []\n\n\ndef put(f):\n    TABLE.append(f)\n    return f\n\n\n"
EFFECTS |= {
    what: PUT + text
    for what, text in {
        "a call in a list": "_ = [put({})]",
        "a call in a comprehension": "_ = [put(x + {}) for x in [1]]",
        "a call in a call": "_ = sorted(put({}), key=str)",
        "a writing function that a call gets": "_ = list(map(put, [{}]))",
        "a method of a table that a call gets": "_ = list(map(TABLE.append, [{}]))",
        "a lambda called at once": "_ = (lambda: put({}))()",
        "a lambda that a call gets": "_ = list(map(lambda x: put(x), [{}]))",
        "a method of a table": "_ = TABLE.append({})",
        "a method of a table in a table": "T = {{'a': TABLE}}\n_ = T['a'].append({})",
        "a call of an alias": "same = put\n_ = same({})",
        "a call of a lambda's name": "same = lambda x: TABLE.append(x)\n_ = same({})",
        "a call of a bound method's name": "same = TABLE.append\n_ = [same({})]",
        "setattr": "_ = setattr(put, 'level', {})",
        "a function that uses setattr": ("def mark(x): setattr(TABLE, 'a', x)\n\n\n_ = [mark({})]"),
        "a class method that fills its class": (
            "class C:\n    kept = []\n\n    @classmethod\n"
            "    def keep(cls, x): cls.kept.append(x)\n\n\n_ = [C.keep({})]"
        ),
        "a method of an object": (
            "class C:\n    def keep(self, x): self.kept = x\n\n\nc = C()\n_ = [c.keep({})]"
        ),
        "a library's registration": "import atexit\n_ = atexit.register({})",
        "a call as default": "def f(x=put({})): pass",
        "a call as keyword-only default": "def f(*, x=(put({}),)): pass",
        "a call in a class body": "class C:\n    put({})",
        "an assigned call in a class body": "class C:\n    x = [put({})]",
        "a default in a class body": "class C:\n    def f(self, x=put({})): pass",
        "a decorator in a class body": "class C:\n    @put\n    def f(self): return {}",
        "an item assignment in a class body": "class C:\n    TABLE[0:] = [{}]",
        "an import in a class body": "class C:\n    import json\n    x = {}",
        "a call in a nested class": "class C:\n    class D:\n        put({})",
        "a call in a base class": "class C(type(put({}))): pass",
        "a call in a class keyword": "class C(metaclass=type(put({}))): pass",
        "a lambda as decorator": "@(lambda f: TABLE.append(f))\ndef f(): return {}",
        "a partial as decorator": (
            "from functools import partial\n\n\nD = {{}}\n\n\n"
            "@partial(D.setdefault, 'f')\ndef f(): return {}"
        ),
        "a named partial as decorator": (
            "from functools import partial\n\n\nkeep = partial(put)\n\n\n@keep\ndef f(): return {}"
        ),
        "an item as decorator": "T = {{'a': put}}\n\n\n@T['a']\ndef f(): return {}",
    }.items()
}
NO_EFFECTS = {
    "a call of a pure function in a list": "def g(x): return x\n\n\nx = [g({})]",
    "a pure default": "def g(x): return x\n\n\ndef f(x=g({})): pass",
    "a library's method called like a table's": "import numpy\n\n\nx = [numpy.add({}, 1)]",
    "a property with a setter": (
        "class C:\n    @property\n    def x(self): return {}\n\n"
        "    @x.setter\n    def x(self, v): pass"
    ),
    "a lambda that nobody calls": ("TABLE = []\n\n\nput = lambda f: TABLE.append({})"),
    "a class body of pure calls": "class C:\n    x = [tuple([{}])]",
    "a frozen dataclass with a factory": (
        "from dataclasses import dataclass, field\n\n\n@dataclass(frozen=True)\nclass C:\n"
        "    x: list = field(default_factory=lambda: [{}])"
    ),
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


def test_a_table_of_another_module_is_known_as_one(follow):
    files = {
        "lab/table.py": "T = []\n",
        "lab/body.py": "from lab.table import T\n\n\nx = [T.append({})]\n\n\ndef run(): pass\n",
    }
    before = follow({**files, "lab/body.py": files["lab/body.py"].format(1)})

    after = follow({**files, "lab/body.py": files["lab/body.py"].format(2)})

    assert before.digest != after.digest


def type_checking(imports):
    return f"{imports}\nif {{guard}}:\n    x = {{value}}\n\n\ndef run(): pass\n"


@pytest.mark.parametrize(
    ("imports", "guard"),
    [
        ("from typing import TYPE_CHECKING", "TYPE_CHECKING"),
        ("from typing import TYPE_CHECKING as checking", "checking"),
        ("import typing", "typing.TYPE_CHECKING"),
        ("import typing as t", "t.TYPE_CHECKING"),
    ],
)
def test_a_block_below_the_constant_of_typing_does_not_run(follow, imports, guard):
    text = type_checking(imports)
    before = follow({"lab/body.py": text.format(guard=guard, value=1)})

    after = follow({"lab/body.py": text.format(guard=guard, value=2)})

    assert before.digest == after.digest


@pytest.mark.parametrize(
    "imports",
    [
        "TYPE_CHECKING = True",
        "from lab.flags import TYPE_CHECKING",
        "from typing import TYPE_CHECKING\nTYPE_CHECKING = True",
        "from typing import TYPE_CHECKING\ntry:\n    TYPE_CHECKING = True\nfinally:\n    pass",
    ],
)
def test_a_block_below_a_name_of_our_own_runs(follow, imports):
    text = type_checking(imports)
    files = {"lab/flags.py": "TYPE_CHECKING = True\n"}
    before = follow({**files, "lab/body.py": text.format(guard="TYPE_CHECKING", value=1)})

    after = follow({**files, "lab/body.py": text.format(guard="TYPE_CHECKING", value=2)})

    assert before.digest != after.digest


ORDERS = {
    "two imports": ("from lab.a import f", "from lab.b import f"),
    "an import and a function": ("from lab.a import f", "def f(): return 3"),
    "an import and a value": ("from lab.a import f", "f = 1"),
    "a function and a star import": ("def f(): return 3", "from lab.a import *"),
    "two star imports": ("from lab.a import *", "from lab.b import *"),
}


@pytest.mark.parametrize("what", ORDERS)
def test_the_order_counts_where_an_import_binds_a_name_again(follow, what):
    first, second = ORDERS[what]
    files = {"lab/a.py": "def f(): return 1\n", "lab/b.py": "def f(): return 2\n"}
    run = "\n\n\ndef run(c, i, o): return f()\n"

    one = follow({**files, "lab/body.py": f"{first}\n{second}{run}"})
    other = follow({**files, "lab/body.py": f"{second}\n{first}{run}"})

    assert one.digest != other.digest


def test_the_order_of_imports_that_bind_the_same_does_not_count(follow):
    files = {"lab/__init__.py": "", "lab/a.py": "X = 1\n", "lab/b.py": "X = 2\n"}
    imports = ["import lab.a", "import lab.b"]
    run = "\n\n\ndef run(c, i, o): return lab.a.X + lab.b.X\n"

    one = follow({**files, "lab/body.py": "\n".join(imports) + run})
    other = follow({**files, "lab/body.py": "\n".join(imports[::-1]) + run})

    assert one.digest == other.digest
