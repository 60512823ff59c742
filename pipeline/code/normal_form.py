"""The canonical bytes of a syntax tree: equal for every Python that can parse the source.

Form of a node: `(`, class name, for each field that holds something `.name=` and its value, `)`;
fields sorted by name; text length-prefixed. Positions, expression contexts, type comments and the
`u` of `u"..."` are left out. `ast.dump` and bytecode are no alternative: both change between
versions, and so do f-strings inside the tree. 3.12 puts empty constants into format
specifications that 3.11 and 3.13 do not have, so the text pieces of f-strings are merged.
"""

from __future__ import annotations

import ast
import hashlib
import struct
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

VERSION = "seaglass-code/1"

_IGNORED = frozenset({"ctx", "type_comment", "type_ignores", "kind"})
_DEEP = 100_000
_HEADS: dict[type[ast.AST], bytes] = {}
_FIELDS: dict[type[ast.AST], tuple[tuple[str, bytes], ...]] = {}


def normal_form(nodes: Iterable[ast.AST]) -> bytes:
    """The canonical bytes of some (simplified) syntax trees, one after another.

    >>> normal_form(ast.parse("x = ('a'  'b')").body) == normal_form(ast.parse('x = "ab"').body)
    True
    """
    nodes = list(nodes)
    try:
        return _joined(nodes)
    except RecursionError:  # a sum of 10,000 terms is 10,000 levels deep
        limit = sys.getrecursionlimit()
        sys.setrecursionlimit(_DEEP)  # since 3.11 calls of Python by Python take no C stack
        try:
            return _joined(nodes)
        finally:
            sys.setrecursionlimit(limit)


def digest_of(form: bytes) -> str:
    """SHA-256 of a normal form under this version of it, 64 hex digits."""
    return hashlib.sha256(VERSION.encode() + b"\0" + form).hexdigest()


def _joined(nodes: list[ast.AST]) -> bytes:
    out: list[bytes] = []
    for node in nodes:
        _append_node(node, out)
    return b"".join(out)


def _append_node(node: ast.AST, out: list[bytes]) -> None:
    kind = node.__class__
    if kind is ast.Name:  # every third node: in the same form, at once
        out.append(b"(Name.id=" + _scalar(node.id) + b")")  # type: ignore[attr-defined]  # a Name
        return
    if kind not in _FIELDS:
        _HEADS[kind] = b"(" + kind.__name__.encode()
        names = sorted(set(kind._fields) - _IGNORED)
        _FIELDS[kind] = tuple((name, b"." + name.encode() + b"=") for name in names)
    out.append(_HEADS[kind])
    if kind is ast.Constant or kind is ast.MatchSingleton:
        out.append(_constant(node.value))  # type: ignore[attr-defined]  # both have it
    elif kind is ast.JoinedStr or kind is ast.FormattedValue:
        _append_fields(_without_empty_texts(node), kind, out)
    else:
        _append_fields(node, kind, out)
    out.append(b")")


def _append_fields(node: ast.AST, kind: type[ast.AST], out: list[bytes]) -> None:
    for name, label in _FIELDS[kind]:
        value = getattr(node, name, None)
        if value is None or value == []:
            continue
        out.append(label)
        if isinstance(value, list):
            out.append(b"[")
            for item in value:
                _append_value(item, out)
            out.append(b"]")
        else:
            _append_value(value, out)


def _append_value(value: object, out: list[bytes]) -> None:
    if isinstance(value, ast.AST):
        _append_node(value, out)
    else:
        out.append(_scalar(value))


def _without_empty_texts(node: ast.AST) -> ast.AST:
    """An f-string, or one value of it, as every version would have parsed it."""
    if isinstance(node, ast.JoinedStr):
        return ast.JoinedStr(_merged_texts(node.values))
    if isinstance(node, ast.FormattedValue) and isinstance(node.format_spec, ast.JoinedStr):
        spec = _merged_texts(node.format_spec.values)
        return ast.FormattedValue(
            node.value, node.conversion, ast.JoinedStr(spec) if spec else None
        )
    return node


def _merged_texts(values: list[ast.expr]) -> list[ast.expr]:
    """The pieces of an f-string: neighbouring texts joined, empty ones dropped."""
    merged: list[ast.expr] = []
    for value in values:
        if not isinstance(value, ast.Constant):
            merged.append(value)
        elif merged and isinstance(merged[-1], ast.Constant):
            merged[-1] = ast.Constant(str(merged[-1].value) + str(value.value))
        elif value.value:
            merged.append(value)
    return merged


def _scalar(value: object) -> bytes:
    if value is None:
        return b"-"
    if isinstance(value, str):
        return _sized(b"s", value.encode("utf-8", "surrogatepass"))
    if isinstance(value, int):
        return b"i%d;" % value
    msg = f"syntax tree holds a {type(value).__name__} where none is expected"
    raise TypeError(msg)


def _constant(value: object) -> bytes:
    if value is None or value is Ellipsis or isinstance(value, bool):
        return f"={value};".encode()
    if isinstance(value, str):
        return _scalar(value)
    if isinstance(value, bytes):
        return _sized(b"y", value)
    if isinstance(value, int):
        return f"x{value:x};".encode()  # hex: decimal conversion refuses above 4,300 digits
    if isinstance(value, float):
        return b"f" + struct.pack(">d", value)
    if isinstance(value, complex):
        return b"c" + struct.pack(">dd", value.real, value.imag)
    msg = f"syntax tree holds a constant of type {type(value).__name__}"
    raise TypeError(msg)


def _sized(tag: bytes, payload: bytes) -> bytes:
    return b"%b%d:%b" % (tag, len(payload), payload)
