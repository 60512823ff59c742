"""What counts of a config class that a body is handed without naming it.

Its field values are in the step's config already, and so is all that `__post_init__` did to them.
Counting the fields as code too would undo `since`: adding one would move every address. What is
left is what the body can call: methods, properties and class constants.
"""

from __future__ import annotations

import ast
import copy

from pipeline.code.module import Statement
from pipeline.code.simplify import dotted, is_no_op


def behaviour_of(statement: Statement) -> tuple[Statement | None, list[tuple[str, ...]]]:
    """The class without its fields (None if nothing is left), and its bases as dotted chains."""
    node = statement.node
    if not isinstance(node, ast.ClassDef):
        return statement, []
    bases = [dotted(base) for base in node.bases]
    kept = [item for item in node.body if not is_no_op(item) and not _is_value(item)]
    if not kept:
        return None, [base for base in bases if base]
    reduced = copy.copy(node)
    reduced.body = copy.deepcopy(kept)
    reduced.bases, reduced.keywords, reduced.decorator_list = [], [], []
    return Statement(statement.module, reduced, statement.first_line), [
        base for base in bases if base
    ]


def _is_value(item: ast.stmt) -> bool:
    """Whether the encoding of the config holds it: a field, or what checks and derives fields."""
    if isinstance(item, ast.AnnAssign):
        return "ClassVar" not in dotted(item.annotation)
    return isinstance(item, ast.FunctionDef) and item.name == "__post_init__"
