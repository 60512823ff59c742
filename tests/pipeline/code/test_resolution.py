"""Names lead to what they mean through every form of import that Python has."""

import pytest

from pipeline.errors import CodeError

LIBRARY = {
    "lab/__init__.py": "",
    "lab/ops/__init__.py": "from .fast import sign as signature\nfrom . import slow\n",
    "lab/ops/fast.py": "def sign(): return table\n\n\ntable = 1\n\n\ndef unused(): pass\n",
    "lab/ops/slow.py": "def sign(): pass\n\n\ndef unused(): pass\n",
}
FAST = {"lab.ops.fast:sign", "lab.ops.fast:table"}
IMPORTS = {
    "from module import name": ("from lab.ops.fast import sign", "sign()", FAST),
    "from module import name as": ("from lab.ops.fast import sign as s", "s()", FAST),
    "import dotted": ("import lab.ops.fast", "lab.ops.fast.sign()", FAST),
    "import dotted as": ("import lab.ops.fast as f", "f.sign()", FAST),
    "from package import module": ("from lab.ops import fast", "fast.sign()", FAST),
    "from package import module as": ("from lab.ops import fast as f", "f.sign()", FAST),
    "relative from": ("from .ops.fast import sign", "sign()", FAST),
    "relative module": ("from .ops import fast", "fast.sign()", FAST),
    "relative package": ("from . import ops", "ops.fast.sign()", FAST),
    "re-export": ("from lab.ops import signature", "signature()", FAST),
    "re-export by attribute": ("import lab.ops", "lab.ops.signature()", FAST),
    "re-exported module": ("from lab.ops import slow", "slow.sign()", {"lab.ops.slow:sign"}),
    "star": ("from lab.ops.fast import *", "sign()", FAST),
    "star of a star": ("from lab.stars import *", "sign()", FAST),
    "alias": ("from lab.ops.fast import sign\n\n\ns = sign", "s()", {*FAST, "lab.body:s"}),
    "inside the function": ("", "from lab.ops.fast import sign; sign()", FAST),
    "module inside the function": ("", "import lab.ops.fast as f; f.sign()", FAST),
    "getattr with a constant": ("from lab.ops import fast", "getattr(fast, 'sign')()", FAST),
    "conditional import": (
        ("if 1:\n    from lab.ops.fast import sign"),
        "sign()",
        {*FAST, "lab.body:<top level>"},
    ),
    "import with a fallback": (
        ("try:\n    from lab.ops.fast import sign\nexcept ImportError:\n    sign = None"),
        "sign()",
        {*FAST, "lab.body:<top level>"},
    ),
    "import by constant name": (
        "from importlib import import_module",
        "import_module('lab.ops.slow')",
        {"lab.ops.slow:sign", "lab.ops.slow:unused"},
    ),
    "import by relative name": (
        "import importlib",
        ("importlib.import_module('.ops.slow', __package__)"),
        {"lab.ops.slow:sign", "lab.ops.slow:unused"},
    ),
    "a module as a value": (
        "from lab.ops import slow",
        "print(slow)",
        {"lab.ops.slow:sign", "lab.ops.slow:unused"},
    ),
    "a module in a local": (
        "from lab.ops import slow",
        "x = slow; x.sign()",
        {"lab.ops.slow:sign", "lab.ops.slow:unused"},
    ),
    "a body named in text": ("", "print('lab.ops.fast:sign')", FAST),
}


@pytest.mark.parametrize("what", IMPORTS)
def test_an_imported_name_leads_to_its_symbol_and_no_other(follow, what):
    head, use, expected = IMPORTS[what]
    files = {**LIBRARY, "lab/stars.py": "from lab.ops.fast import *\n"}

    found = follow({**files, "lab/body.py": f"{head}\n\n\ndef run(): {use}\n"})

    assert set(found.symbols) == {"lab.body:run", *expected}
    assert found.notices == ()


def test_a_star_import_respects_a_literal_all(follow):
    files = {
        "lab/body.py": "from lab.a import *\nfrom lab.b import *\n\n\ndef run(): return f()\n",
        "lab/a.py": "__all__ = ['g']\n\n\ndef f(): pass\n",
        "lab/b.py": "def f(): pass\n",
    }

    found = follow(files)

    assert set(found.symbols) == {"lab.body:run", "lab.body:<top level>", "lab.b:f"}


def test_a_computed_all_lets_a_star_import_bring_every_name(follow):
    files = {
        "lab/body.py": "from lab.a import *\n\n\ndef run(): return _f()\n",
        "lab/a.py": "__all__ = ['g']\n__all__ += ['_f']\n\n\ndef _f(): pass\n",
    }

    found = follow(files)

    assert set(found.symbols) == {"lab.body:run", "lab.a:_f"}


def test_circular_imports_and_re_exports_end(follow):
    files = {
        "lab/a.py": (
            "from lab.b import y\nfrom lab.b import *\n"
            "from lab.a import x as x\n\n\ndef f(): return x, y\n"
        ),
        "lab/b.py": "from lab.a import f as y\nfrom lab.a import *\n",
        "lab/body.py": "from lab.a import f\n\n\ndef run(): f()\n",
    }

    found = follow(files)

    assert "lab.a:f" in found.symbols


def test_a_name_defined_twice_counts_twice(follow):
    text = "def f(): return {}\n\n\ndef f(): return 2\n\n\ndef run(): return f()\n"
    before = follow({"lab/body.py": text.format(0)})

    after = follow({"lab/body.py": text.format(1)})

    assert before.symbols["lab.body:f"] != after.symbols["lab.body:f"]


def test_the_engine_is_no_part_of_the_closure(follow):
    files = {
        "lab/body.py": "from pipeline.body import f\n\n\ndef run(): f()\n",
        "pipeline/body.py": "def f(): pass\n",
    }

    found = follow(files)

    assert set(found.symbols) == {"lab.body:run"}
    assert set(found.modules) == {"lab.body"}
    assert found.distributions == {}


def test_text_that_names_no_symbol_is_only_text(follow):
    files = {"lab/body.py": "def run(): return 'lab.body:nothing', 'lab.nowhere:f', 'a:b'\n"}

    assert set(follow(files).symbols) == {"lab.body:run"}


def test_a_single_file_can_be_a_root(follow):
    found = follow({"mine.py": "def run(): return x\n\n\nx = 1\n"}, "mine:run")

    assert set(found.symbols) == {"mine:run", "mine:x"}


def test_a_docstring_counts_where_the_code_reads_it(follow):
    text = '"""{}"""\n\n\ndef run(): print(__doc__)\n'
    before = follow({"lab/body.py": text.format("a")})

    after = follow({"lab/body.py": text.format("b")})

    assert before.digest != after.digest


def test_a_module_with_getattr_counts_whole_where_a_name_is_not_found(follow):
    files = {
        "lab/body.py": "from lab.late import thing\n\n\ndef run(): thing()\n",
        "lab/late.py": "def __getattr__(name): return build\n\n\ndef build(): pass\n",
    }

    found = follow(files)

    assert set(found.symbols) == {"lab.body:run", "lab.late:__getattr__", "lab.late:build"}
    assert found.notices == (
        "lab/body.py:4: lab.late.thing is made at run time, so all of lab.late counts",
    )


def test_a_missing_module_is_an_error_with_file_and_line(follow):
    files = {
        "lab/body.py": (
            "import json\nfrom lab import nothing\nimport lab.nowhere\n\n\ndef run(): pass\n"
        )
    }

    with pytest.raises(CodeError, match=r"lab/body.py:3: no module 'lab.nowhere'"):
        follow(files)


def test_a_missing_module_inside_try_is_fine(follow):
    files = {
        "lab/body.py": (
            "try:\n    import lab.extra\nexcept ImportError:\n    pass\n\n\ndef run(): pass\n"
        )
    }

    assert set(follow(files).symbols) == {"lab.body:run", "lab.body:<top level>"}


def test_a_missing_body_is_an_error_that_suggests_a_name(follow):
    with pytest.raises(CodeError, match=r"'lab.body:runn' is not defined.*\['run'\]"):
        follow({"lab/body.py": "def run(): pass\n"}, "lab.body:runn")


def test_a_body_in_no_module_is_an_error_that_names_the_packages(follow):
    with pytest.raises(
        CodeError, match=r"no module 'lab.bodies' in the first-party packages \(lab\)"
    ):
        follow({"lab/body.py": "def run(): pass\n"}, "lab.bodies:run")


def test_a_syntax_error_is_an_error_with_file_and_line(follow):
    with pytest.raises(CodeError, match=r"lab/body.py:2: "):
        follow({"lab/body.py": "x = 1\ndef run(:\n"})


def test_a_file_of_another_encoding_is_an_error_with_its_name(make_tree):
    tree = make_tree({"lab/body.py": ""})
    (tree.roots["lab"] / "body.py").write_bytes(b"x = '\xff'\n")

    with pytest.raises(CodeError, match=r"lab/body.py:1: not readable"):
        tree.module("lab.body")


def test_a_module_that_is_loaded_first_still_counts_whole_as_a_value(follow):
    files = {**LIBRARY, "lab/body.py": "import lab.ops.slow\n\n\ndef run(): print(lab.ops.slow)\n"}

    assert "lab.ops.slow:unused" in follow(files).symbols


def test_a_star_import_below_a_function_of_its_own_brings_the_later_one(follow):
    body = "def f(): return 1\n\n\nfrom lab.a import *\n\n\ndef run(): return f()\n"
    files = {"lab/body.py": body, "lab/a.py": "def f(): return 2\n"}

    assert "lab.a:f" in follow(files).symbols
