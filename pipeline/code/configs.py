"""What counts of a config class that a body is handed without naming it.

Its field values are in the step's config already, and so is what `__post_init__` made of them.
Counting the fields as code too would undo `since`: adding one would move every address. What is
left is what the body can call or read besides: methods, properties, class constants, defaults of
`InitVar`, `metadata` and the like of fields, and a `__post_init__` that may do more than check and
derive fields.
"""

from __future__ import annotations

import ast
import copy
from typing import TYPE_CHECKING

from pipeline.code.imports import Target
from pipeline.code.module import Statement
from pipeline.code.post_init import only_fills_fields
from pipeline.code.simplify import dotted, is_no_op

if TYPE_CHECKING:
    from pipeline.code.module import ModuleSource

_NO_FIELDS = frozenset({"ClassVar", "InitVar"})
_UNNOTICED = frozenset({"frozen", "kw_only", "slots", "init", "match_args", "weakref_slot"})
_NOTICED = ("metadata", "repr", "compare", "hash", None)  # None: `**options`
_DATACLASS = Target("dataclasses", ("dataclass",))


def behaviour_of(statement: Statement) -> tuple[Statement | None, list[tuple[str, ...]]]:
    """The class without its fields (None if nothing is left), and its bases as dotted chains."""
    node = statement.node
    if not isinstance(node, ast.ClassDef):
        return statement, []
    bases = [base for base in map(dotted, node.bases) if base]
    kept = _behaving(node, statement.module)
    decorators = [item for item in node.decorator_list if not _is_dataclass(item, statement.module)]
    if not (kept or decorators or node.keywords):
        return None, bases
    reduced = copy.copy(node)
    reduced.body = copy.deepcopy(kept)
    reduced.bases, reduced.decorator_list = [], copy.deepcopy(decorators)
    return Statement(statement.module, reduced, statement.first_line), bases


def _behaving(node: ast.ClassDef, module: ModuleSource) -> list[ast.stmt]:
    """The statements of the class that the encoding of the config does not hold."""
    annotated = [item for item in node.body if isinstance(item, ast.AnnAssign)]
    fields = [item for item in annotated if _is_field(item, module)]
    names = frozenset(name for item in fields for name in dotted(item.target))
    valueless = [item for item in annotated if item.value is None]  # `seed: InitVar[int]`
    dropped = {id(item) for item in (*fields, *valueless)}
    kept = [
        item
        for item in node.body
        if not (is_no_op(item) or id(item) in dropped or only_fills_fields(item, names))
    ]
    return [*kept, *(found for item in fields for found in _options(item))]


def _options(item: ast.AnnAssign) -> list[ast.stmt]:
    """`name = ...` for each option of a field that a body could notice: `metadata={...}`."""
    if not isinstance(item.value, ast.Call):
        return []
    return [
        ast.copy_location(ast.Assign([item.target], word.value), item)
        for word in item.value.keywords
        if word.arg in _NOTICED
    ]


def _is_field(item: ast.AnnAssign, module: ModuleSource) -> bool:
    annotation = item.annotation
    if isinstance(annotation, ast.Constant):
        return not any(word in str(annotation.value) for word in _NO_FIELDS)
    parts = dotted(annotation)
    imported = module.imports.get(parts[0], []) if parts else []
    words = {*parts, *(name for target in imported for name in target.names)}
    return words.isdisjoint(_NO_FIELDS)


def _is_dataclass(decorator: ast.expr, module: ModuleSource) -> bool:
    """Whether it is `@dataclass`, with no option that a body could notice."""
    options = decorator.keywords if isinstance(decorator, ast.Call) else []
    if any(option.arg not in _UNNOTICED for option in options):
        return False
    parts = dotted(decorator)
    imported = module.imports.get(parts[0], []) if parts else []
    return any(Target(t.module, t.names + parts[1:]) == _DATACLASS for t in imported)
