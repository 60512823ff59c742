"""What a recipe changes in other modules when it is imported is found, with its place."""

import pytest

from pipeline.code import CodeReader

WORDS = """
SEPARATOR = " "
TABLE = {}


def configure(x):
    TABLE[x] = x


def register(function):
    TABLE[function] = 1
    return function


def split(text):
    return text.split(SEPARATOR)
"""
PATCHES = {
    "an attribute": "from lab import words\nwords.SEPARATOR = ','",
    "an attribute by its whole name": "import lab.words\nlab.words.SEPARATOR = ','",
    "a table": "from lab.words import TABLE\nTABLE['a'] = 1",
    "a method of a table": "from lab import words\nwords.TABLE.update(a=1)",
    "setattr": "from lab import words\nsetattr(words, 'SEPARATOR', ',')",
    "a function": "from lab.words import configure\nconfigure('a')",
    "a value": "from lab.words import configure\nX = configure('a')",
    "a decorator": "from lab.words import register\n\n\n@register\ndef f(): pass",
    "below an if": "from lab import words\nif 1:\n    words.SEPARATOR = ','",
}
HARMLESS = {
    "a read": "from lab import words\nX = words.SEPARATOR",
    "a call": "from lab.words import split\nX = split('a b')",
    "an own table": "TABLE = {}\nTABLE['a'] = 1",
    "a function that nobody calls": "from lab import words\n\n\ndef f(): words.SEPARATOR = ','",
    "a library": "import decimal\ndecimal.getcontext().prec = 5",
}


def patches_of(make_tree, text):
    files = {"lab/__init__.py": "", "lab/words.py": WORDS, "lab/recipe.py": text + "\n"}
    return CodeReader(make_tree(files), versions={}).patches("lab.recipe")


@pytest.mark.parametrize("what", PATCHES)
def test_a_change_of_another_module_is_found(make_tree, what):
    found = patches_of(make_tree, PATCHES[what])

    assert {(patch.by, patch.changed) for patch in found} == {("lab.recipe", "lab.words")}
    assert found[0].place.startswith("lab/recipe.py:")


@pytest.mark.parametrize("what", HARMLESS)
def test_what_changes_nothing_elsewhere_is_no_patch(make_tree, what):
    assert patches_of(make_tree, HARMLESS[what]) == []


def test_a_change_by_a_module_that_the_recipe_imports_is_found(make_tree):
    files = {
        "lab/words.py": WORDS,
        "lab/setup.py": PATCHES["an attribute"] + "\n",
        "lab/recipe.py": "import lab.setup\n",
    }

    (found,) = CodeReader(make_tree(files), versions={}).patches("lab.recipe")

    assert (found.by, found.place) == ("lab.setup", "lab/setup.py:2")


def test_the_plan_tells_of_a_recipe_that_changes_a_bodys_module(project):
    project.edit("recipe.py", "from", "from PACKAGE import words\n\nwords.SEPARATOR = ','\nfrom")

    notices = {t: project.plan(everything=True).closure(t).notices for t in ("count", "total")}

    (notice,) = notices["count"]
    assert f"importing {project.name}.recipe changes {project.name}.words" in notice
    assert notices["total"] == notices["count"]
