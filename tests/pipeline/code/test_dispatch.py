"""Dispatch by a computed name makes a package count, and the plan can say where."""

import pytest

from pipeline.code import explain_change

DISPATCH = {
    "importlib.import_module": "import importlib\n\n\ndef run(x): importlib.import_module(x)\n",
    "import_module": "from importlib import import_module\n\n\ndef run(x): import_module(x)\n",
    "import_module as a value": (
        "from importlib import import_module\n\n\ndef run(x): map(import_module, x)\n"
    ),
    "__import__": "\n\n\ndef run(x): __import__(x)\n",
    "exec": "\n\n\ndef run(x): exec(x)\n",
    "eval": "\n\n\ndef run(x): eval(x)\n",
    "globals": "\n\n\ndef run(x): globals()[x]()\n",
    "sys.modules": "import sys\n\n\ndef run(x): sys.modules[x]\n",
    "pkgutil": "import pkgutil\n\n\ndef run(x): pkgutil.iter_modules(x)\n",
    "runpy": "import runpy\n\n\ndef run(x): runpy.run_path(x)\n",
    "__subclasses__": "\n\n\ndef run(x): x.__subclasses__()\n",
    "pickle": "import pickle\n\n\ndef run(x): pickle.loads(x)\n",
    "a Python of our own": "import sys\n\n\ndef run(x): x(sys.executable)\n",
    "getattr of a package": "import lab\n\n\ndef run(x): getattr(lab, x)\n",
    "vars of a package": "import lab\n\n\ndef run(x): vars(lab)[x]\n",
    "a package's __dict__": "import lab\n\n\ndef run(x): lab.__dict__[x]\n",
}
OTHER = {"lab/__init__.py": "", "lab/hidden.py": "def found(): return 1\n"}


@pytest.mark.parametrize("what", DISPATCH)
def test_dispatch_makes_the_whole_package_count_and_is_noted_with_its_place(follow, what):
    found = follow({**OTHER, "lab/body.py": DISPATCH[what]})

    assert "lab.hidden:found" in found.symbols
    assert [notice.split(": ")[0] for notice in found.notices] == ["lab/body.py:4"]
    assert found.notices[0].endswith("all of lab counts")


NO_DISPATCH = {
    "a method called eval": "def run(x): x.eval()",
    "a local called eval": "def run(eval): eval('x')",
    "a function called eval": "def eval(x): pass\n\n\ndef run(x): eval(x)",
    "getattr of an object": "def run(x, y): getattr(x, y)",
    "vars of an object": "def run(x): vars(x)",
    "an own import_module": "def import_module(x): pass\n\n\ndef run(x): import_module(x)",
    "a library's module by name": (
        "import importlib\n\n\ndef run(x): importlib.import_module('json')"
    ),
}


@pytest.mark.parametrize("what", NO_DISPATCH)
def test_what_only_looks_like_dispatch_is_none(follow, what):
    found = follow({**OTHER, "lab/body.py": NO_DISPATCH[what] + "\n"})

    assert "lab.hidden:found" not in found.symbols
    assert found.notices == ()


def test_a_function_called_import_module_is_followed(follow):
    found = follow({"lab/body.py": NO_DISPATCH["an own import_module"] + "\n"})

    assert set(found.symbols) == {"lab.body:run", "lab.body:import_module"}


def test_a_relative_name_narrows_the_fallback_to_its_package(follow):
    files = {
        **OTHER,
        "lab/ops/body.py": (
            "from importlib import import_module\n\n\n"
            "def run(x): import_module(f'.{x}', __package__)\n"
        ),
        "lab/ops/a.py": "def f(): pass\n",
    }

    found = follow(files, "lab.ops.body:run")

    assert set(found.symbols) == {"lab.ops.body:run", "lab.ops.a:f"}


def test_a_constant_beginning_narrows_the_fallback_to_a_package(follow):
    files = {
        **OTHER,
        "lab/body.py": (
            "import importlib\n\n\ndef run(x): importlib.import_module(f'lab.ops.{x}')\n"
        ),
        "lab/ops/a.py": "def f(): pass\n",
        "lab/ops/b.py": "def f(): pass\n",
    }

    found = follow(files)

    assert set(found.symbols) == {"lab.body:run", "lab.ops.a:f", "lab.ops.b:f"}
    assert found.notices == (
        "lab/body.py:4: importlib.import_module cannot be followed, so all of lab.ops counts",
    )


@pytest.mark.parametrize(
    "use", ["open(__file__)", "__spec__.origin", "resources.files('lab')", "resources.read_text()"]
)
def test_reading_files_beside_the_code_makes_data_files_count(follow, use):
    text = f"from importlib import resources\n\n\ndef run(): {use}\n"
    before = follow({"lab/body.py": text, "lab/words.txt": "a"})

    after = follow({"lab/body.py": text, "lab/words.txt": "b"})

    assert before.digest != after.digest
    assert before.notices[0].endswith(
        "all data files of lab count; files outside lab are not seen, declare them as sources"
    )


def test_data_files_do_not_count_otherwise(follow):
    before = follow({"lab/body.py": "def run(): pass\n", "lab/words.txt": "a"})

    after = follow({"lab/body.py": "def run(): pass\n", "lab/words.txt": "b"})

    assert before.digest == after.digest


def test_a_library_that_is_nowhere_is_noted(follow):
    found = follow({"lab/body.py": "import no_such_lib_\n\n\ndef run(): no_such_lib_.f()\n"})

    assert found.notices == (
        (
            "lab/body.py:4: 'no_such_lib_' is neither first-party, locked nor installed here, "
            "so its code does not count"
        ),
    )


READS = {
    "__doc__": "\n\n\ndef run(): print(helper.__doc__)",
    "__doc__ by name": "\n\n\ndef run(): getattr(helper, '__doc__')",
    "__annotations__": "\n\n\ndef run(): print(helper.__annotations__)",
    "typing.get_type_hints": "import typing\n\n\ndef run(): typing.get_type_hints(helper)",
    "inspect.signature": "import inspect\n\n\ndef run(): inspect.signature(helper)",
    "inspect.getsource": "from inspect import getsource\n\n\ndef run(): getsource(helper)",
    "inspect.getdoc": "import inspect as i\n\n\ndef run(): i.getdoc(helper)",
}
HELPER = '\n\n\ndef helper(x: {}):\n    """{}"""\n'


@pytest.mark.parametrize("what", READS)
@pytest.mark.parametrize("changed", [("str", "a"), ("int", "b")])
def test_code_read_as_data_counts_as_written(follow, what, changed):
    before = follow({"lab/body.py": READS[what] + HELPER.format("int", "a")})

    after = follow({"lab/body.py": READS[what] + HELPER.format(*changed)})

    assert before.digest != after.digest
    assert before.notices[0].startswith(f"lab/body.py:4: {what.split()[0]} reads code as data, so")
    assert len(before.notices) == 1


def test_a_docstring_that_is_only_set_is_not_read(follow):
    text = "def run(): helper.__doc__ = 'x'" + HELPER
    before = follow({"lab/body.py": text.format("int", "a")})

    after = follow({"lab/body.py": text.format("int", "b")})

    assert before.digest == after.digest


TOOL = "import sys\n\n\ndef work(): return 1\n\n\nif __name__ == '__main__':\n    print(work())\n"
COMMANDS = {
    "a list": '["python", "-m", "lab.tool"]',
    "a tuple": '("python3", "-I", "-m", "lab.tool", "x")',
    "a line": '"exec python -m lab.tool --fast"',
    "words": '"python", "-m", "lab.tool"',
    "a text with values": 'f"python -m lab.tool {c}"',
    "a computed name": '["python", "-m", c.tool]',
    "a text with a computed name": 'f"python -m lab.{c} now"',
    "a program in the command": '["python3", "-c", "import sys; import lab.tool; lab.tool.work()"]',
    "a program that imports from": '("python3", "-c", "from lab.tool import work")',
    "a program that imports two": '("python3", "-c", "import sys, lab.tool as t; t.work()")',
    "a program that imports a module of a package": '["python", "-c", "from lab import tool"]',
    "a path": '["python", "lab/tool.py"]',
    "a path in a line": '"python ./lab/tool.py x"',
}


@pytest.mark.parametrize("what", COMMANDS)
@pytest.mark.parametrize(("old", "new"), [("return 1", "return 2"), ("print(", "repr(")])
def test_a_module_that_a_command_runs_counts_with_its_main_block(follow, what, old, new):
    body = f"import subprocess\n\n\ndef run(c, i, o): subprocess.run({COMMANDS[what]})\n"
    before = follow({"lab/body.py": body, "lab/tool.py": TOOL})

    after = follow({"lab/body.py": body, "lab/tool.py": TOOL.replace(old, new)})

    assert before.digest != after.digest


def test_a_package_that_a_command_runs_counts_by_its_main_module(follow):
    body = "import os\n\n\ndef run(c, i, o): os.system('python -m lab.tool')\n"
    files = {"lab/body.py": body, "lab/tool/__init__.py": "", "lab/tool/__main__.py": "X = 1\n"}

    assert "lab.tool.__main__:X" in follow(files).symbols


def test_the_main_blocks_of_a_package_count_where_python_itself_is_started(follow):
    body = "import sys\n\n\ndef run(c, i, o): c(sys.executable)\n"

    assert "lab.tool:<main>" in follow({"lab/body.py": body, "lab/tool.py": TOOL}).symbols


@pytest.mark.parametrize("text", ["git commit -m lab", "-m", "see lab/tool.pyc", "a -m lab-tool"])
def test_what_only_looks_like_a_command_is_text(follow, text):
    body = f"def run(c, i, o): print({text!r})\n"

    found = follow({"lab/__init__.py": "X = 1\n", "lab/body.py": body, "lab/tool.py": TOOL})

    assert not any(name.startswith("lab.tool") for name in found.symbols)


IMPORTS = {
    "at the top": "import lab.fast\n\n\ndef run(c, i, o): return lab.fast.x()\n",
    "by name": "from lab import fast\n\n\ndef run(c, i, o): return fast.x()\n",
    "inside": "def run(c, i, o):\n    from lab.fast import x\n    return x()\n",
    "as an attribute": "import lab\n\n\ndef run(c, i, o): return lab.fast.x()\n",
}


@pytest.mark.parametrize("how", IMPORTS)
def test_a_compiled_module_counts_by_its_bytes_and_is_noted(follow, how):
    file = "lab/fast.cpython-311-x86_64-linux-gnu.so"
    files = {"lab/__init__.py": "", "lab/body.py": IMPORTS[how], file: "\x7fELF 1"}
    before = follow(files)

    after = follow({**files, file: "\x7fELF 2"})

    assert explain_change(before, after) == [f"{file} changed"]
    assert "lab.fast is compiled, so the bytes of its file count" in before.notices[0]


def test_a_compiled_module_that_nobody_imports_does_not_count(follow):
    files = {"lab/body.py": "def run(c, i, o): pass\n", "lab/fast.abi3.so": "\x7fELF 1"}

    assert set(follow(files).symbols) == {"lab.body:run"}
