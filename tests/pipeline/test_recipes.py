"""Loading a recipe: what it takes on the command line, and what is said when it is wrong."""

import itertools
import os
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from pipeline.errors import RecipeError, UsageError
from pipeline.recipes import load_recipe

_NUMBERS = itertools.count(1)

RECIPE = """
    from __future__ import annotations

    from typing import TYPE_CHECKING, Literal

    from pipeline.step import Step

    if TYPE_CHECKING:
        from collections.abc import Mapping
        from somewhere import Unknown


    def step(name="step", **options):
        return Step(name, "lab.body:run", **options)


    def dag(
        count: int = 1,
        rate: float = 0.5,
        fast: bool = False,
        name: str = "x",
        limit: int | None = 3,
        mode: Literal["small", "large"] = "small",
        sizes: tuple[int, ...] = (),
        pair: tuple[int, str] = (1, "a"),
        plain="y",
        extra: Unknown = None,
    ) -> Mapping[str, Step]:
        return {"target": step()}


    def needs(value: int):
        return step()


    def alone():
        return step("alone", label="b")


    def gathers(*rest, **options):
        return step()


    def several():
        return [step("one"), step("two")]


    def same_titles():
        return [step("one"), step("one")]


    def nothing():
        return {}


    def number():
        return 3


    def wrong_value():
        return {"target": 3}


    def wrong_name():
        return {"a@b": step()}


    def one_name_twice():
        return {"caf\\u00e9": step("one"), "cafe\\u0301": step("two")}


    VALUE = 1
    """


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    return tmp_path


@pytest.fixture
def recipe(folder):
    """The name of a recipe file, its module name new to this process."""
    return write(folder, RECIPE)


def write(folder, text):
    file = folder / f"recipe{next(_NUMBERS)}.py"
    file.write_text(dedent(text), encoding="utf-8")
    return file.name


SETTINGS = {
    "count=1_000_000": ("count", 1_000_000),
    "count=-3": ("count", -3),
    "rate=1e-3": ("rate", 0.001),
    "rate=2": ("rate", 2.0),
    "fast=true": ("fast", True),
    "fast=No": ("fast", False),
    "fast=1": ("fast", True),
    "name=a=b": ("name", "a=b"),
    "name=": ("name", ""),
    "limit=7": ("limit", 7),
    "limit=none": ("limit", None),
    "mode=large": ("mode", "large"),
    "sizes=1,2_000": ("sizes", (1, 2_000)),
    "sizes=": ("sizes", ()),
    "pair=2,b": ("pair", (2, "b")),
    "plain=text": ("plain", "text"),
}


@pytest.mark.parametrize("setting", SETTINGS)
def test_a_setting_is_read_by_the_annotation_of_its_parameter(recipe, setting):
    name, value = SETTINGS[setting]

    found = load_recipe(recipe, [setting]).settings

    assert found == {name: value}
    assert type(found[name]) is type(value)


WRONG_SETTINGS = {
    "count": "--set 'count': expected name=value",
    "count=many": "--set count=many: expected a whole number",
    "count=1.5": "--set count=1.5: expected a whole number",
    "rate=fast": "--set rate=fast: expected a number",
    "fast=maybe": "--set fast=maybe: expected true or false",
    "limit=some": "--set limit=some: expected a whole number",
    "mode=huge": "--set mode=huge: expected one of small, large",
    "sizes=1,x": "--set sizes=1,x: expected a whole number",
    "pair=1": "--set pair=1: expected 2 values with commas between, got 1",
    "cuont=1": "has no setting 'cuont'; did you mean 'count'?",
    "zzz=1": "has no setting 'zzz'; it takes count, rate",
    "extra=1": "--set extra=1: a parameter of type",
}


@pytest.mark.parametrize("setting", WRONG_SETTINGS)
def test_a_wrong_setting_is_answered_with_what_was_expected(recipe, setting):
    with pytest.raises(RecipeError) as refusal:
        load_recipe(recipe, [setting])

    assert WRONG_SETTINGS[setting] in str(refusal.value)


WRONG_FUNCTIONS = {
    "needs": "needs a value for 'value': --set value=...",
    "nothing": "returned no step; return a dict of name -> Step",
    "number": "returned int; expected a dict of name -> Step",
    "wrong_value": "returned 'target': 3; expected name -> Step",
    "wrong_name": "name 'a@b' must hold no '@'",
    "same_titles": "returned two targets named 'one'; give each its own name",
    "one_name_twice": "returned two targets named 'caf\u00e9'",
    "alnoe": "has no function 'alnoe'; did you mean 'alone'?",
    "VALUE": "has no function 'VALUE'",
}


@pytest.mark.parametrize("function", WRONG_FUNCTIONS)
def test_a_wrong_recipe_is_answered_with_what_was_expected(recipe, function):
    with pytest.raises(UsageError) as refusal:
        load_recipe(f"{recipe}:{function}")

    assert WRONG_FUNCTIONS[function] in str(refusal.value)


def test_a_recipe_may_return_one_step_or_a_list(recipe):
    assert list(load_recipe(f"{recipe}:alone").targets) == ["alone-b"]
    assert list(load_recipe(f"{recipe}:several").targets) == ["one", "two"]


def test_the_default_function_is_dag(recipe):
    assert load_recipe(recipe).name == f"{recipe.removesuffix('.py')}:dag"


def test_a_file_in_a_package_is_imported_by_its_whole_name(folder):
    package = folder / f"own{next(_NUMBERS)}" / "recipes"
    package.mkdir(parents=True)
    for place in (package.parent, package):
        (place / "__init__.py").touch()
    (package / "first.py").write_text(dedent(RECIPE), encoding="utf-8")

    found = load_recipe(str(package / "first.py"))

    assert found.module == f"{package.parent.name}.recipes.first"
    assert found.project == folder


def test_a_module_is_found_from_the_folder_one_stands_in(recipe, folder):
    assert load_recipe(f"{recipe.removesuffix('.py')}:alone").project == folder


def test_a_missing_file_is_answered_with_the_recipes_that_are_here(folder):
    (folder / "recipes").mkdir()
    (folder / "recipes" / "quickstart.py").touch()

    with pytest.raises(RecipeError, match=r"quick.py does not exist; recipes here: recipes/quick"):
        load_recipe("recipes/quick.py")


@pytest.mark.parametrize("spec", ["recipes/quickstart", "", ":dag"])
def test_a_spec_that_is_neither_file_nor_module_is_refused(folder, spec):
    with pytest.raises(RecipeError, match=r"expected FILE.py, FILE.py:function or package.module"):
        load_recipe(spec)


def test_a_missing_module_is_named(folder):
    with pytest.raises(RecipeError, match="no module 'nowhere_at_all'"):
        load_recipe("nowhere_at_all:dag")


def test_a_module_that_the_recipe_misses_is_named(folder):
    with pytest.raises(RecipeError, match="no module 'nowhere_at_all'"):
        load_recipe(write(folder, "import nowhere_at_all"))


@pytest.mark.parametrize(
    ("text", "message"),
    [("def dag(:", r"invalid syntax|expected"), ("from os import no_such", "no_such")],
)
def test_a_recipe_that_cannot_be_imported_says_why(folder, text, message):
    with pytest.raises(RecipeError, match=rf"cannot be imported: .*{message}"):
        load_recipe(write(folder, text))


def test_a_syntax_error_is_told_with_its_own_place(folder):
    recipe = write(folder, "X = 1\n\ndef dag(:\n    pass\n")

    with pytest.raises(RecipeError) as refusal:
        load_recipe(recipe)

    assert str(refusal.value).endswith(f"({recipe}:3)")
    assert "frozen" not in str(refusal.value)


def test_parameters_that_gather_the_rest_are_no_dials(recipe):
    assert load_recipe(f"{recipe}:gathers").settings == {}

    with pytest.raises(RecipeError, match="has no setting 'rest'; it takes none"):
        load_recipe(f"{recipe}:gathers", ["rest=1"])


@pytest.mark.parametrize("name", ["json.py", "click.py"])
def test_a_file_whose_module_name_is_taken_is_refused(folder, name):
    (folder / name).write_text(dedent(RECIPE), encoding="utf-8")

    with pytest.raises(RecipeError, match=rf"its module name '{name[:-3]}' is taken by .*rename"):
        load_recipe(name)


def test_the_place_of_a_recipe_does_not_enter_its_name(recipe, folder):
    here = load_recipe(recipe).name
    os.chdir(folder.parent)

    assert load_recipe(str(Path(folder.name) / recipe)).name == here


def test_a_recipe_that_goes_elsewhere_does_not_take_the_store_along(folder):
    name = write(folder, dedent(RECIPE) + "\n\nimport os\n\nos.chdir('/')\n")

    load_recipe(name)

    assert Path.cwd() == folder
