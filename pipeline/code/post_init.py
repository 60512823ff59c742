"""Whether a `__post_init__` can leave nothing behind but field values.

One that only checks must not count, or a better error message would run steps again. The rule
errs on the side of counting: whatever is not plainly a check, or a constant name of a field that
`object.__setattr__` fills, is taken to set what no digest of the config holds.
"""

from __future__ import annotations

import ast

from pipeline.code.references import MUTATORS, SETTERS

_HARMLESS = (
    ast.If, ast.For, ast.While, ast.Assert, ast.Raise, ast.Assign, ast.AnnAssign, ast.AugAssign,
    ast.Expr, ast.Pass, ast.Return, ast.Continue, ast.Break, ast.Match, ast.Try,
)  # fmt: skip
_INDIRECT = frozenset({"vars", "super", "exec", "eval", "locals", "globals", *SETTERS})


def only_fills_fields(item: ast.stmt, fields: frozenset[str]) -> bool:
    """Whether the statement is such a `__post_init__`, for a class of these fields."""
    if not isinstance(item, ast.FunctionDef) or item.name != "__post_init__":
        return False
    if not item.args.args or item.decorator_list or item.args.defaults or item.args.kw_defaults:
        return False
    own = item.args.args[0].arg
    work: list[ast.AST] = [*item.body]
    while work:
        node = work.pop()
        if isinstance(node, ast.Call) and _fills_field(node, own, fields):
            work += node.args[2:]
        elif isinstance(node, ast.Attribute) and _is_read(node, own):
            continue
        elif _may_set(node, own):
            return False
        else:
            work += ast.iter_child_nodes(node)
    return True


def _may_set(node: ast.AST, own: str) -> bool:
    if isinstance(node, ast.Name):
        return node.id == own or node.id in _INDIRECT
    if isinstance(node, ast.Attribute | ast.Subscript):
        attr = getattr(node, "attr", "")
        return not isinstance(node.ctx, ast.Load) or attr in MUTATORS | SETTERS
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return isinstance(node.func.value, ast.Name) and node.func.value.id == own
    return isinstance(node, ast.stmt) and not isinstance(node, _HARMLESS)


def _is_read(node: ast.Attribute, own: str) -> bool:
    """Whether it is `self.name`; a call of that is seen before, one level up."""
    return (
        isinstance(node.value, ast.Name)
        and node.value.id == own
        and isinstance(node.ctx, ast.Load)
        and not node.attr.startswith("__")
        and node.attr not in MUTATORS
    )


def _fills_field(node: ast.Call, own: str, fields: frozenset[str]) -> bool:
    """Whether it is `object.__setattr__(self, "field", value)`."""
    return (
        ast.unparse(node.func) == "object.__setattr__"
        and len(node.args) == 3  # noqa: PLR2004 - object, name, value
        and isinstance(node.args[0], ast.Name)
        and node.args[0].id == own
        and isinstance(node.args[1], ast.Constant)
        and node.args[1].value in fields
    )
