"""The house limits: small modules, small functions, few parameters, no vague names.

Linters judge lines; these bound the tail of a codebase, which is where it becomes unreadable.
"""

from __future__ import annotations

import ast
import re
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

PRODUCT = ("pipeline", "steps", "model", "kernels", "recipes", "benchmarks")
MODULE_LINES = 400
FUNCTION_LINES = 50
TRITON_BODY_LINES = 120
NESTING = 3
PARAMETERS = 6
POSITIONAL = 3
LINE_WIDTH = 100
VAGUE_MODULES = {"utils", "util", "helpers", "helper", "common", "misc", "manager", "handler"}
VAGUE_PREFIXES = ("process_", "handle_", "do_")

# Someone else's calling convention decides the parameters: click's options, numba's and Triton's
# compilers, autograd's `ctx`, `--set` for a recipe, and the engine for a shard function.
FOREIGN_DECORATORS = re.compile(r"\.command\b|jit\b|triton")
SHARD_PARAMETERS = ["config", "shard", "inputs", "output"]
# Four positions that everyone knows by heart; each with its reason.
KNOWN_BY_HEART = {
    "run_body",  # body, config, inputs, into: the order of the step itself
    "segment_attention",  # query, key, value and their segments: the order of the paper
}

Function = ast.FunctionDef | ast.AsyncFunctionDef
BLOCKS = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.With, ast.AsyncWith, ast.Try, ast.Match)
ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Definition:
    """One function where it stands."""

    path: Path
    node: Function
    in_class: bool

    @property
    def place(self) -> str:
        return f"{self.path}:{self.node.lineno} {self.node.name}"

    @property
    def decorators(self) -> str:
        return " ".join(ast.unparse(d) for d in self.node.decorator_list)

    @property
    def positional(self) -> list[str]:
        """Names of the positional parameters, without self and cls."""
        names = [a.arg for a in (*self.node.args.posonlyargs, *self.node.args.args)]
        return names[1:] if self.in_class and names[:1] in (["self"], ["cls"]) else names

    @property
    def is_called_by_a_framework(self) -> bool:
        return (
            bool(FOREIGN_DECORATORS.search(self.decorators))
            or self.positional[:1] == ["ctx"]
            or self.positional == SHARD_PARAMETERS
            or (self.path.parts[0] == "recipes" and not self.node.name.startswith("_"))
        )


@cache
def first_party(*tops: str) -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *tops],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split("\n")
    return [Path(line) for line in listed if line.endswith(".py") and (ROOT / line).is_file()]


@cache
def lines_of(path: Path) -> list[str]:
    return (ROOT / path).read_text(encoding="utf-8").splitlines()


@cache
def definitions(*tops: str) -> list[Definition]:
    return [
        Definition(path, node, isinstance(parent, ast.ClassDef))
        for path in first_party(*tops)
        for parent in ast.walk(ast.parse("\n".join(lines_of(path))))
        for node in ast.iter_child_nodes(parent)
        if isinstance(node, Function)
    ]


def code_lines(node: Function) -> int:
    """Lines of the signature and the body, without the docstring."""
    total = (node.end_lineno or node.lineno) - node.lineno + 1
    if ast.get_docstring(node, clean=False) is None:
        return total
    docstring = node.body[0]
    return total - ((docstring.end_lineno or docstring.lineno) - docstring.lineno + 1)


def depth(node: ast.AST) -> int:
    """How deep blocks nest; an `elif` is as deep as its `if`, a nested function starts anew."""
    deepest = 0
    for child in ast.iter_child_nodes(node):
        if isinstance(child, Function | ast.ClassDef | ast.Lambda):
            continue
        is_elif = isinstance(node, ast.If) and node.orelse == [child] and isinstance(child, ast.If)
        own = int(isinstance(child, BLOCKS) and not is_elif)
        deepest = max(deepest, own + depth(child))
    return deepest


def test_modules_are_short():
    long = {str(p): len(lines_of(p)) for p in first_party(*PRODUCT, "tests")}

    over = {path: lines for path, lines in long.items() if lines > MODULE_LINES}

    assert not over, "a room is missing in these modules"


def test_lines_are_narrow():
    pragma = re.compile(r"  # (type: ignore|noqa).*")

    wide = [
        f"{path}:{number}"
        for path in first_party(*PRODUCT, "tests")
        for number, line in enumerate(lines_of(path), 1)
        if len(pragma.sub("", line)) > LINE_WIDTH
    ]

    assert not wide


def test_functions_are_short():
    long = [
        f"{d.place}: {code_lines(d.node)} lines"
        for d in definitions(*PRODUCT, "tests")
        if code_lines(d.node) > (TRITON_BODY_LINES if "triton" in d.decorators else FUNCTION_LINES)
    ]

    assert not long


def test_functions_are_flat():
    deep = [
        f"{d.place}: {depth(d.node)} deep"
        for d in definitions(*PRODUCT, "tests")
        if depth(d.node) > NESTING
    ]

    assert not deep


def test_functions_take_few_parameters():
    ours = [d for d in definitions(*PRODUCT) if not d.is_called_by_a_framework]

    many = [
        f"{d.place}: {len(d.positional)} positional, {len(d.node.args.kwonlyargs)} by keyword"
        for d in ours
        if len(d.positional) + len(d.node.args.kwonlyargs) > PARAMETERS
        or len(d.positional) > POSITIONAL + (d.node.name in KNOWN_BY_HEART)
    ]

    assert not many


def test_names_say_what_they_hold():
    modules = [str(p) for p in first_party(*PRODUCT) if VAGUE_MODULES & {*p.parent.parts, p.stem}]
    functions = [
        d.place for d in definitions(*PRODUCT) if d.node.name.lstrip("_").startswith(VAGUE_PREFIXES)
    ]

    assert not modules + functions
