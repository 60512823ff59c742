"""The result of following a body's code: one digest, and everything needed to say why it moved."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pipeline.code.normal_form import VERSION
from pipeline.errors import FormatError
from pipeline.redaction import redacted

if TYPE_CHECKING:
    from collections.abc import Mapping

ENGINE_VERSION = "seaglass-engine/1"


@dataclass(frozen=True, kw_only=True)
class CodeClosure:
    """Everything first-party that a body uses.

    Attributes:
        body: `package.module:function`.
        symbols: `module:name` -> digest of its normal form. `module:<top level>` are the
            statements that run when the module is imported.
        texts: the same keys -> source as written; what `diff` shows. Not part of the digest.
        distributions: name -> public version of what the symbols import.
        modules: module -> sha256 of its file, for everything that importing the body loads, so
            that a worker can prove it imported this. Not part of the digest.
        notices: what could not be followed, and what counts instead.
        version: of the normal form and of this digest.

    """

    body: str
    symbols: Mapping[str, str]
    texts: Mapping[str, str]
    distributions: Mapping[str, str]
    modules: Mapping[str, str]
    notices: tuple[str, ...] = field(default=())
    version: str = VERSION

    @classmethod
    def of_engine(cls, body: str) -> CodeClosure:
        """The code of a body of the engine, which counts by name and by a version of its own.

        So what was imported keeps its key, whatever becomes of the normal form or of the engine.
        """
        return cls(
            body=body,
            symbols={},
            texts={},
            distributions={},
            modules={},
            version=ENGINE_VERSION,
        )

    @cached_property
    def digest(self) -> str:
        """SHA-256 of version, body, symbols and distributions, 64 hex digits."""
        counted = [self.version, self.body, dict(self.symbols), dict(self.distributions)]
        text = json.dumps(counted, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

    def to_json(self) -> dict[str, Any]:
        """A JSON object; `digest` is in it for readers and is checked on the way back.

        The texts are kept for reading only, so secrets that stand in the code are masked.
        """
        texts = {key: redacted(text) for key, text in self.texts.items()}
        notices = list(self.notices)
        return {**asdict(self), "texts": texts, "notices": notices, "digest": self.digest}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> CodeClosure:
        """The closure that `to_json` made.

        Raises:
            FormatError: a field is missing or of another version, or the digest does not fit.

        """
        try:
            known = {spec.name: value[spec.name] for spec in fields(cls)}
            closure = cls(**{**known, "notices": tuple(known["notices"])})
            recorded = value["digest"]
        except (KeyError, TypeError) as error:
            msg = f"code record lacks {error}; expected the form {VERSION}"
            raise FormatError(msg) from error
        if closure.digest != recorded:
            msg = (
                f"code record of {closure.body} says digest {recorded[:16]}, its symbols give "
                f"{closure.digest[:16]}; it was changed after it was written"
            )
            raise FormatError(msg)
        return closure


def explain_change(
    old: CodeClosure | Mapping[str, Any], new: CodeClosure | Mapping[str, Any]
) -> list[str]:
    """Why two code digests differ, one cause a line; empty if nothing that counts differs.

    >>> old = {"symbols": {"steps.data.pack_body:plan_rows": "aa"}}
    >>> explain_change(old, {"symbols": {"steps.data.pack_body:plan_rows": "bb"}})
    ['steps.data.pack_body:plan_rows changed']
    """
    before, after = _as_json(old), _as_json(new)
    causes = [
        f"{name} {before[key]} -> {after[key]}"
        for key, name in (("version", "form of the code digest"), ("body", "body"))
        if before.get(key, after.get(key)) != after.get(key)
    ]
    was, now = before.get("symbols", {}), after.get("symbols", {})
    causes += [
        f"{name} changed" for name in sorted(was.keys() & now.keys()) if was[name] != now[name]
    ]
    causes += [f"{name} added" for name in sorted(now.keys() - was.keys())]
    causes += [f"{name} removed" for name in sorted(was.keys() - now.keys())]
    return causes + _version_changes(
        before.get("distributions", {}), after.get("distributions", {})
    )


def _version_changes(was: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    causes = []
    for name in sorted(was.keys() | now.keys()):
        if name not in was:
            causes.append(f"{name} {now[name]} added")
        elif name not in now:
            causes.append(f"{name} {was[name]} removed")
        elif was[name] != now[name]:
            causes.append(f"{name} {was[name]} -> {now[name]}")
    return causes


def _as_json(closure: CodeClosure | Mapping[str, Any]) -> Mapping[str, Any]:
    return asdict(closure) if isinstance(closure, CodeClosure) else closure
