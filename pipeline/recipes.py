"""Loads a recipe and calls it: `file.py`, `file.py:function` or `package.module:function`.

A recipe is a Python function that returns steps. Its parameters are its dials; `--set name=value`
gives them, read by the annotation of the parameter.
"""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import inspect
import sys
import typing
from contextlib import chdir, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace, UnionType
from typing import TYPE_CHECKING, Any

from pipeline.code.roots import OWN_NAMES, find_roots
from pipeline.errors import RecipeError, SeaglassError
from pipeline.paths import checked_label
from pipeline.redaction import MIN_CHARS, names_a_secret, remember
from pipeline.running.failures import describe
from pipeline.step import Step

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

DEFAULT_FUNCTION = "dag"
_TRUE = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """A loaded recipe: its stable name, its targets by name, and where its project lies."""

    name: str
    targets: Mapping[str, Step]
    settings: Mapping[str, Any]
    module: str
    project: Path


def load_recipe(spec: str, settings: Sequence[str] = ()) -> Recipe:
    """Import a recipe and call it.

    Raises:
        RecipeError: the recipe cannot be found, takes no such setting, or returns no steps.

    """
    module_name, function_name, project = _locate(spec)
    with chdir(Path.cwd()):  # a recipe that goes elsewhere does not take the store along
        function = _function(_import(module_name, spec), function_name, spec)
        values = _settings(function, settings, spec)
        targets = _targets(_call(function, values, spec), spec)
    return Recipe(
        name=f"{module_name}:{function_name}",
        targets=targets,
        settings=values,
        module=module_name,
        project=project,
    )


def _call(function: Callable[..., Any], values: dict[str, Any], spec: str) -> Any:
    """Build the steps. What a recipe raises is the user's to mend: a message, no traceback."""
    try:
        with redirect_stdout(sys.stderr):
            return function(**values)
    except SeaglassError:
        raise
    except (Exception, SystemExit) as error:
        msg = f"recipe {spec} cannot be built: {describe(error)}"
        raise RecipeError(msg) from error


def _locate(spec: str) -> tuple[str, str, Path]:
    """Module name, function name and project folder; puts the import root on `sys.path`."""
    place, _, function = spec.partition(":")
    function = function or DEFAULT_FUNCTION
    if not place.endswith(".py"):
        if "/" in place or not place:
            msg = f"recipe {spec!r}: expected FILE.py, FILE.py:function or package.module:function"
            raise RecipeError(msg)
        _import_from(Path.cwd())
        return place, function, Path.cwd()
    file = Path(place).absolute()
    if not file.is_file():
        near = sorted(str(p) for p in Path().glob("recipes/*.py") if p.name != "__init__.py")
        hint = f"; recipes here: {', '.join(near)}" if near else ""
        msg = f"recipe file {place} does not exist{hint}"
        raise RecipeError(msg)
    parts, root = [file.stem], file.parent
    while (root / "__init__.py").exists():
        parts.insert(0, root.name)
        root = root.parent
    _import_from(root)
    _refuse_shadowed(".".join(parts), file)
    return ".".join(parts), function, root


def _refuse_shadowed(module_name: str, file: Path) -> None:
    """Python would import another module of that name: say so before it does."""
    spec = sys.modules.get(module_name) or importlib.util.find_spec(module_name)
    origin = getattr(spec, "origin", None) or getattr(spec, "__file__", None)
    if origin is None or not Path(origin).exists() or not file.samefile(origin):
        msg = f"recipe file {file}: its module name {module_name!r} is taken by {origin}; rename it"
        raise RecipeError(msg)


def _import_from(root: Path) -> None:
    if str(root) not in sys.path:
        sys.path.insert(0, str(root))


def _import(module_name: str, spec: str) -> Any:
    try:
        with redirect_stdout(sys.stderr):  # stdout belongs to the verb
            return importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        top = (error.name or "").partition(".")[0]
        if top in OWN_NAMES:
            find_roots([top])  # tells when a package of the project stands in front of ours
        msg = f"recipe {spec}: no module {error.name!r}; run where it lies, or install it"
        raise RecipeError(msg) from error
    except SeaglassError:
        raise
    except (Exception, SystemExit) as error:
        msg = f"recipe {spec} cannot be imported: {describe(error)}"
        raise RecipeError(msg) from error


def _function(module: Any, name: str, spec: str) -> Callable[..., Any]:
    function = getattr(module, name, None)
    if not callable(function):
        known = [
            n
            for n, f in vars(module).items()
            if inspect.isfunction(f) and f.__module__ == module.__name__
        ]
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else f"; it has {sorted(known)}"
        msg = f"recipe {spec}: module {module.__name__} has no function {name!r}{hint}"
        raise RecipeError(msg)
    return function  # type: ignore[no-any-return]  # checked to be callable


def _settings(function: Callable[..., Any], settings: Sequence[str], spec: str) -> dict[str, Any]:
    parameters = _dials(function)
    values: dict[str, Any] = {}
    for setting in settings:
        name, equals, text = setting.partition("=")
        name = name.strip()
        if not equals:
            msg = f"--set {setting!r}: expected name=value"
            raise RecipeError(msg)
        if name not in parameters:
            near = difflib.get_close_matches(name, parameters, n=1)
            hint = (
                f"did you mean {near[0]!r}?"
                if near
                else f"it takes {', '.join(parameters) or 'none'}"
            )
            msg = f"recipe {spec} has no setting {name!r}; {hint}"
            raise RecipeError(msg)
        if names_a_secret(name) and len(text) >= MIN_CHARS:
            remember(text)
        values[name] = _parse(text, _hint(function, name), f"--set {name}={text}")
    for name, parameter in parameters.items():
        if parameter.default is inspect.Parameter.empty and name not in values:
            msg = f"recipe {spec} needs a value for {name!r}: --set {name}=..."
            raise RecipeError(msg)
    return values


def _dials(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """The parameters that a setting can name: neither `*rest` nor `**options`."""
    gathering = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    parameters = inspect.signature(function).parameters
    return {name: one for name, one in parameters.items() if one.kind not in gathering}


def _hint(function: Callable[..., Any], name: str) -> Any:
    """The annotation of one parameter; the others may name what only a type checker imports."""
    alone = SimpleNamespace(__annotations__={name: function.__annotations__.get(name, str)})
    try:
        return typing.get_type_hints(alone, globalns=function.__globals__)[name]
    except NameError:
        return None


def _parse(text: str, hint: Any, place: str) -> Any:
    """Read a setting by the annotation of its parameter."""
    options = typing.get_args(hint)
    if isinstance(hint, UnionType) or typing.get_origin(hint) is typing.Union:
        if type(None) in options and text.lower() == "none":
            return None
        return _parse(text, next(o for o in options if o is not type(None)), place)
    if typing.get_origin(hint) is typing.Literal:
        for option in options:
            if str(option) == text:
                return option
        msg = f"{place}: expected one of {', '.join(map(str, options))}"
        raise RecipeError(msg)
    if hint is bool:
        if text.lower() in _TRUE:
            return _TRUE[text.lower()]
        msg = f"{place}: expected true or false"
        raise RecipeError(msg)
    if hint is int or hint is float:
        try:
            return hint(text.replace("_", ""))
        except ValueError as error:
            msg = f"{place}: expected {'a whole number' if hint is int else 'a number'}"
            raise RecipeError(msg) from error
    if hint is str or hint is Any:
        return text
    if typing.get_origin(hint) is tuple:
        return _parse_tuple(text, options, place)
    msg = f"{place}: a parameter of type {hint} cannot be set on the command line"
    raise RecipeError(msg)


def _parse_tuple(text: str, options: tuple[Any, ...], place: str) -> tuple[Any, ...]:
    items = [item for item in text.split(",") if item]
    hints = [options[0]] * len(items) if options[-1] is Ellipsis else list(options)
    if len(hints) != len(items):
        msg = f"{place}: expected {len(hints)} values with commas between, got {len(items)}"
        raise RecipeError(msg)
    return tuple(_parse(item, hint, place) for item, hint in zip(items, hints, strict=True))


def _targets(returned: Any, spec: str) -> dict[str, Step]:
    if isinstance(returned, Step):
        return {returned.title: returned}
    if isinstance(returned, dict) and returned:
        bad = [k for k, v in returned.items() if not isinstance(k, str) or not isinstance(v, Step)]
        if not bad:
            return _named(returned.items(), spec)
        msg = f"recipe {spec} returned {bad[0]!r}: {returned[bad[0]]!r}; expected name -> Step"
        raise RecipeError(msg)
    if (
        isinstance(returned, list | tuple)
        and returned
        and all(isinstance(s, Step) for s in returned)
    ):
        return _named(((step.title, step) for step in returned), spec)
    if isinstance(returned, dict | list | tuple) and not returned:
        msg = f"recipe {spec} returned no step; return a dict of name -> Step"
        raise RecipeError(msg)
    msg = f"recipe {spec} returned {type(returned).__name__}; expected a dict of name -> Step"
    raise RecipeError(msg)


def _named(steps: Iterable[tuple[str, Step]], spec: str) -> dict[str, Step]:
    found: dict[str, Step] = {}
    for given, step in steps:
        name = checked_label(given)
        if name in found and found[name] is not step:
            msg = f"recipe {spec} returned two targets named {name!r}; give each its own name"
            raise RecipeError(msg)
        found[name] = step
    return found
