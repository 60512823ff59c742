"""The normal form of code: golden digests, every Python that runs here, laws."""

import ast
import json
import shutil
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.code import normal_form
from pipeline.code.normal_form import digest_of
from pipeline.code.simplify import simplify

REPOSITORY = Path(__file__).parents[3]
GOLDEN = REPOSITORY / "tests" / "golden" / "code_digests.json"
CASES = json.loads(GOLDEN.read_text(encoding="utf-8"))
STANDARD_MODULES = ("dataclasses", "functools", "textwrap", "typing")

PROGRAM = """
import ast, json, sys, warnings
sys.path.insert(0, sys.argv[1])
warnings.simplefilter("ignore")
from pipeline.code.normal_form import digest_of, normal_form
from pipeline.code.simplify import simplify
found = {}
for name, case in json.load(open(sys.argv[2], encoding="utf-8")).items():
    nodes = ast.parse(case["source"]).body
    for node in nodes:
        simplify(node)
    found[name] = digest_of(normal_form(nodes))
print(json.dumps(found))
"""
WHOLE_CLOSURE = """
import json, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from pipeline.code import CodeReader, SourceTree
tree = SourceTree({"steps": Path(sys.argv[1], "steps"), "kernels": Path(sys.argv[1], "kernels")})
reader = CodeReader(tree, versions=json.loads(sys.argv[2]))
print(reader.closure("steps.data.download_body:run").digest)
"""


def form_of(source):
    nodes = ast.parse(source).body
    for node in nodes:
        simplify(node)
    return normal_form(nodes)


def interpreters():
    """Other supported Pythons on this machine: by version, on the path or kept by pyenv."""
    found = {}
    for version in {"3.11", "3.12", "3.13", "3.14"} - {f"3.{sys.version_info.minor}"}:
        kept = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python"))
        for path in (*map(str, kept), shutil.which(f"python{version}")):
            if (
                path
                and subprocess.run([path, "-c", ""], check=False, capture_output=True).returncode
                == 0
            ):
                found[version] = path
    return dict(sorted(found.items()))


OTHER_PYTHONS = interpreters()
NONE_HERE = pytest.param("", marks=pytest.mark.skip("no other supported Python on this machine"))


def output_of(python, program, *arguments):
    command = [python, "-S", "-E", "-c", program, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@pytest.mark.parametrize("name", CASES)
def test_the_digest_of_a_normal_form_never_moves(name):
    """If this fails, every address in every store moves.

    Only a deliberate new form may do that: bump `normal_form.VERSION`, write the new digests into
    the golden file, and say so in the changelog under its own heading.
    """
    case = CASES[name]

    assert digest_of(form_of(case["source"])) == case["digest"]


@pytest.mark.parametrize("version", OTHER_PYTHONS or [NONE_HERE])
def test_another_python_gives_the_same_golden_digests(version):

    found = json.loads(output_of(OTHER_PYTHONS[version], PROGRAM, str(REPOSITORY), str(GOLDEN)))

    assert found == {name: case["digest"] for name, case in CASES.items()}


@pytest.mark.parametrize("version", OTHER_PYTHONS or [NONE_HERE])
def test_another_python_gives_the_same_code_digest_of_a_real_body(version):
    names = ("fsspec", "google-crc32c", "numpy", "pyarrow", "xxhash", "zstandard")
    arguments = str(REPOSITORY), json.dumps(dict.fromkeys(names, "1.0"))

    here = output_of(sys.executable, WHOLE_CLOSURE, *arguments)

    assert output_of(OTHER_PYTHONS[version], WHOLE_CLOSURE, *arguments) == here


def test_the_package_needs_only_the_standard_library():
    program = (
        "import sys; sys.path.insert(0, sys.argv[1]); import pipeline.code as c; print(c.VERSION)"
    )

    assert output_of(sys.executable, program, str(REPOSITORY)) == "seaglass-code/1\n"


SAME = [
    ("x = 'a'", 'x = "a"'),
    ("x = 'a' 'b'", "x = 'ab'"),
    ("x = u'a'", "x = 'a'"),
    ("x = (1)", "x = 1"),
    ("x = 1_000", "x = 1000"),
    ("x = 0xff", "x = 255"),
    ("x = [1, 2,]", "x = [1, 2]"),
    ("f(a,)", "f(a)"),
    ("x = (1, 2)", "x = 1, 2"),
    ("x = f'a' f'{b}'", "x = f'a{b}'"),
    ("x = f'{a:}'", "x = f'{a}'"),
    ("if a: pass\nelse: pass", "if a: ..."),
    ("def f(): 'doc'", "def f(): pass"),
    ("def f(a: int) -> str: return a", "def f(a): return a"),
    ("async def f():\n    x: int = 1", "async def f():\n    x = 1"),
]
DIFFERENT = [
    ("x = 1", "x = 1.0"),
    ("x = 1", "x = True"),
    ("x = 'a'", "x = b'a'"),
    ("x = 0.0", "x = -0.0"),
    ("x = 1j", "x = 1"),
    ("x = None", "x = ..."),
    ("x = ()", "x = []"),
    ("x = (1,)", "x = 1"),
    ("f(*a)", "f(**a)"),
    ("f(a=b)", "f(b=a)"),
    ("f(a)(b)", "f(a, b)"),
    ("x = {1: 2}", "x = {1, 2}"),
    ("x = {**a}", "x = {a: a}"),
    ("a < b < c", "(a < b) < c"),
    ("a + (b + c)", "a + b + c"),
    ("def f(*, a): return a", "def f(a): return a"),
    ("def f(a, /): return a", "def f(a): return a"),
    ("def f(*, a=None): return a", "def f(*, a): return a"),
    ("def f(): return", "async def f(): return"),
    ("def f(): return 1", "def f(): yield 1"),
    ("x = f'{a}'", "x = 'a'"),
    ("x = f'{a!r}'", "x = f'{a}'"),
    ("x = f'{a:{b}}'", "x = f'{a:b}'"),
    ("x = f'{a=}'", "x = f'{a}'"),
    ("[a for b in c]", "{a for b in c}"),
    ("[a for b in c if d]", "[a for b in c]"),
    ("try: a\nexcept b: c", "try: a\nexcept* b: c"),
    ("match a:\n    case True: b", "match a:\n    case None: b"),
    ("match a:\n    case b.c: b", "match a:\n    case b: b"),
    ("class A:\n    x: int", "class A:\n    x: str"),
    ("class A:\n    x: int", "class A: pass"),
    ("a.b", "a['b']"),
    ("x = '\\ud800'", "x = '\\ud801'"),
    ("x = 'a\\0'", "x = 'a'"),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_two_ways_to_write_one_program_have_one_form(one, other):
    assert form_of(one) == form_of(other)


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_two_programs_have_two_forms(one, other):
    assert form_of(one) != form_of(other)


@pytest.mark.parametrize(
    "decorator", ["njit", "numba.njit(parallel=True)", "triton.jit", "cuda.jit", "show.register"]
)
def test_annotations_count_where_the_decorator_reads_them(decorator):
    source = "@{}\ndef f(x: {}): return x\n"

    forms = {form_of(source.format(decorator, kind)) for kind in ("int", "float")}

    assert len(forms) == 2


def test_annotations_count_below_a_name_imported_from_numba(follow):
    source = "from numba import guarded as g\n\n\n@g\ndef run(x: {}): return x\n"
    found = [follow({"lab/body.py": source.format(kind)}) for kind in ("int", "float")]

    assert found[0].digest != found[1].digest


def test_a_very_deep_tree_has_a_form():
    source = "x = " + " + ".join(["1"] * 2000)

    assert form_of(source) == form_of(source.replace(" + ", "+"))


def test_very_long_integers_have_a_form():
    assert form_of(f"x = 0x{'f' * 5000}") != form_of(f"x = 0x{'f' * 5001}")


@pytest.mark.parametrize("name", STANDARD_MODULES)
def test_reformatting_a_whole_module_keeps_its_form(name):
    source = Path(sys.modules[name].__file__).read_text(encoding="utf-8")

    reformatted = ast.unparse(ast.parse(source))

    assert form_of(source) == form_of(reformatted)


SOURCE = dedent('''
    """A module."""
    import os


    class Walker:
        """Walks."""

        steps: int = 0

        def walk(self, *, far=False):
            text = """
            # not a comment
            """
            if far:
                return [text,
                        self.steps]
            return {
                "near": text
            }


    @property
    def run(x):
        match x:
            case [first, *_]:
                return f"{first!r:>{10}}"
        return None
''').strip("\n")
LINES = SOURCE.split("\n")
INSIDE_TEXT = range(11, 13)
PLACES = [n for n in range(len(LINES) + 1) if n not in INSIDE_TEXT]
COMMENTS = st.text(st.characters(blacklist_categories=("Cs", "Cc", "Zl", "Zp")), max_size=20)


@given(st.lists(st.tuples(st.sampled_from(PLACES), st.none() | COMMENTS, st.integers(0, 9))))
def test_inserted_comments_and_blank_lines_never_move_the_form(inserted):
    lines = list(LINES)
    for place, comment, spaces in sorted(inserted, key=lambda item: -item[0]):
        lines.insert(place, "" if comment is None else " " * spaces + "#" + comment)

    assert form_of("\n".join(lines)) == form_of(SOURCE)


@given(st.text(max_size=30), st.text(max_size=30))
def test_the_forms_of_two_texts_are_equal_only_if_the_texts_are(one, other):
    equal = form_of(f"x = {one!r}") == form_of(f"x = {other!r}")

    assert equal == (one == other)
