"""What lies beside a recipe is found by what is imported, not by what looks like an import."""

from textwrap import dedent

import pytest

from pipeline.code.neighbours import neighbours

IMPORTS = {
    "import": "import mine",
    "a second name": "import os, mine",
    "a submodule": "import mine.deep as d",
    "from": "from mine import x",
    "from a submodule": "from mine.deep import x",
    "after a semicolon": "import os; import mine",
    "over lines": "import os, \\\n    mine",
    "inside a function": "def f():\n    import mine",
    "for type checkers": "if TYPE_CHECKING:\n    import mine",
    "by name": "import importlib\nimportlib.import_module('mine.deep')",
    "by the builtin": "__import__('mine')",
    "a body": "Step('x', 'mine.deep:run')",
}
LOOKS_LIKE = {
    "a docstring": '"""\nimport mine\n"""',
    "a comment": "# import mine",
    "a relative import": "from .mine import x",
    "an attribute": "x.mine",
    "the beginning of a name": "import minerals",
    "a file that cannot be parsed": "import mine\n(",
}


def lab(folder, text):
    files = {"lab/__init__.py": "", "lab/recipe.py": text, "mine/deep.py": "", "loose.py": ""}
    for path, content in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(dedent(content), encoding="utf-8")
    return folder


@pytest.mark.parametrize("how", IMPORTS)
def test_what_is_imported_from_beside_the_recipe_belongs_to_it(tmp_path, how):
    found = neighbours({"lab"}, lab(tmp_path, IMPORTS[how]), without=())

    assert found == {"lab", "mine"}


@pytest.mark.parametrize("what", LOOKS_LIKE)
def test_what_only_looks_like_an_import_does_not(tmp_path, what):
    found = neighbours({"lab"}, lab(tmp_path, LOOKS_LIKE[what]), without=())

    assert found == {"lab"}


def test_neighbours_are_found_at_any_distance(tmp_path):
    project = lab(tmp_path, "import mine")
    (project / "mine" / "deep.py").write_text("import loose", encoding="utf-8")

    assert neighbours({"lab"}, project, without=()) == {"lab", "mine", "loose"}


def test_what_the_engine_brings_is_no_neighbour(tmp_path):
    assert neighbours({"lab"}, lab(tmp_path, "import mine"), without=("mine",)) == {"lab"}


def test_a_folder_of_data_is_no_neighbour(tmp_path):
    project = lab(tmp_path, "import data")
    (project / "data").mkdir()

    assert neighbours({"lab"}, project, without=()) == {"lab"}
