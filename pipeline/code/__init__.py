"""The code digest: which first-party code a step's body uses, found without importing any of it.

Importable with the standard library alone. See `docs/decisions/0008-code-digest-by-ast.md`.
"""

from pipeline.code.distributions import installed_version, read_lock
from pipeline.code.normal_form import VERSION, normal_form
from pipeline.code.reader import CodeReader, closure
from pipeline.code.record import CodeClosure, explain_change
from pipeline.code.roots import find_roots
from pipeline.code.tree import SourceTree

__all__ = [
    "VERSION",
    "CodeClosure",
    "CodeReader",
    "SourceTree",
    "closure",
    "explain_change",
    "find_roots",
    "installed_version",
    "normal_form",
    "read_lock",
]
