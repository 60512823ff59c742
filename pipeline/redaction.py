"""Takes secrets out of text before it is kept in a store or shown on a screen.

Two ways find them: by value (what a declared `Secret` or an environment variable with a telling
name holds, in every form that text takes it in) and by form (credentials in a URL, a key in a query
string, a token of a known make). Only what is kept or shown goes through here: identity, data and
the requests themselves never do.
"""

from __future__ import annotations

import base64
import json
import os
import re
from dataclasses import fields, is_dataclass
from functools import lru_cache
from itertools import pairwise
from threading import Lock
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, quote_plus

if TYPE_CHECKING:
    from collections.abc import Iterable

MASK = "***"
MIN_CHARS = 8  # what is shorter could be any word, and would be cut out of ordinary text
_LINE_CHARS = 16  # of a secret of many lines, such as a private key

_SECRET_WORDS = frozenset(
    """apikey auth authorization credential credentials pass passphrase passwd password pat secret
    secrets signature token""".split()  # noqa: SIM905 - a list would take a line for each
)
_KEY_OWNERS = frozenset({"access", "account", "api", "encryption", "private", "secret", "signing"})
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")

# `://user:password@`, also where the password holds a slash; `://host:8080/a@b` has no password.
_USER = re.compile(r"(://)(?:[^/?#\s\"'<>]+|[^/\s:@\"'<>]*:(?!\d+(?:/|$))[^\s@\"'<>]+)@")
_UNBROKEN = re.compile(r"[^\s\"'<>]+")  # no URL is longer
_QUERY = re.compile(
    r"""([?&;](?:[\w.-]*[_.-])?(?:signature|credential|token|secret|password|passwd|api_?key
        |accesskeyid|sig|key|auth)=)[^&;\#\s"'<>\\]+""",
    re.IGNORECASE | re.VERBOSE,
)
_MADE = re.compile(
    r"""(?:hf_[A-Za-z0-9]{20,} | gh[pousr]_[A-Za-z0-9]{20,} | github_pat_\w{20,}
        | (?:AKIA|ASIA)[A-Z0-9]{16} | AIza[\w-]{30,} | ya29\.[\w.-]{20,} | xox[abeprs]-[\w-]{10,}
        | sk-[\w-]{20,} | glpat-[\w-]{16,}
        | -----BEGIN\ [A-Z ]*PRIVATE\ KEY-----(?:.*?-----END\ [A-Z ]*PRIVATE\ KEY-----|.*))""",
    re.VERBOSE | re.DOTALL,
)
_HEADER = re.compile(r"(Bearer|Basic)\s+[\w.~+/=-]{8,}")
# One of these stands in whatever the two above match: most lines of a log are done at once.
_SIGNS = tuple(
    """hf_ ghp_ gho_ ghu_ ghs_ ghr_ github_pat_ AKIA ASIA AIza ya29. xox sk- glpat- -----BEGIN
    Bearer Basic""".split()  # noqa: SIM905 - a list would take a line for each
)


def redacted(text: str) -> str:
    """The text with every secret that can be told as one masked.

    >>> redacted("https://ann:hunter2@host/a?v=1&sig=abc")
    'https://***@host/a?v=1&sig=***'
    """
    pattern = _KNOWN.pattern
    if pattern is not None:
        text = pattern.sub(MASK, text)
    if "://" in text and "@" in text:
        text = _UNBROKEN.sub(_without_users, text)
    if "=" in text and ("?" in text or "&" in text or ";" in text):
        text = _QUERY.sub(rf"\1{MASK}", text)
    if any(sign in text for sign in _SIGNS):
        text = _HEADER.sub(rf"\1 {MASK}", _MADE.sub(MASK, text))
    return text


def redacted_value(value: Any) -> Any:
    """A JSON value with every text in it redacted; under a telling name, all of the text."""
    if isinstance(value, str):
        return redacted(value)
    if isinstance(value, dict):
        return {key: _under_name(key, item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [redacted_value(item) for item in value]
    return value


@lru_cache(maxsize=4_096)
def names_a_secret(name: str) -> bool:
    """Whether a variable or field of that name may hold a secret.

    >>> [names_a_secret(n) for n in ("HF_TOKEN", "api_key", "clientSecret", "num_tokens", "key")]
    [True, True, True, False, False]
    """
    words = [word.lower() for word in _WORD.findall(name)]
    return not _SECRET_WORDS.isdisjoint(words) or any(
        owner in _KEY_OWNERS and word == "key" for owner, word in pairwise(words)
    )


def _without_users(found: re.Match[str]) -> str:
    """Up to the last `@`: each of very many URLs before none would be read to the end for one."""
    before, at, after = found[0].rpartition("@")
    return _USER.sub(rf"\1{MASK}@", before + at) + after


def remember(value: str) -> None:
    """Know a secret value from now on, whatever text it turns up in."""
    _KNOWN.add([value])


def remember_environment() -> None:
    """Know the values of all environment variables whose names tell that they are secret."""
    _KNOWN.add(
        value
        for name, value in os.environ.items()
        if names_a_secret(name) and _may_be_secret(value) and not os.path.exists(value)  # noqa: PTH110 - any text may be asked
    )


def remember_fields(config: Any) -> None:
    """Know the texts that a config holds under telling names, though they should be a `Secret`."""
    waiting = [("", config)]
    while waiting:
        name, value = waiting.pop()
        if isinstance(value, str):
            if names_a_secret(name) and _may_be_secret(value):
                remember(value)
        elif is_dataclass(value):
            waiting += [(spec.name, getattr(value, spec.name)) for spec in fields(value)]
        elif isinstance(value, dict):
            waiting += [(str(key), item) for key, item in value.items()]
        elif isinstance(value, list | tuple):
            waiting += [(name, item) for item in value]


def _under_name(name: object, value: Any) -> Any:
    is_secret = isinstance(value, str) and _may_be_secret(value) and names_a_secret(str(name))
    return MASK if is_secret else redacted_value(value)


def _may_be_secret(value: str) -> bool:
    # `eos_token="<|endoftext|>"` is none; nor is a switch such as `WANDB_API_KEY=off`.
    return len(value) >= MIN_CHARS and not value.startswith(("<", "[")) and "\0" not in value


class _Known:
    """The secret values that this process has met.

    They are the process's and not a step's: what one step was given must not turn up in the log of
    the next one either.
    """

    def __init__(self) -> None:
        self._forms: set[str] = set()
        self._pattern: re.Pattern[str] | None = None
        self._has_read_environment = False
        self._lock = Lock()

    @property
    def pattern(self) -> re.Pattern[str] | None:
        """Matches every known value; None while there is none."""
        if not self._has_read_environment:
            self._has_read_environment = True
            remember_environment()
        return self._pattern

    def add(self, values: Iterable[str]) -> None:
        """Know some more values."""
        forms = {form for value in values for form in _forms(value)}
        with self._lock:
            if forms <= self._forms:
                return
            self._forms |= forms
            longest_first = sorted(self._forms, key=len, reverse=True)
            self._pattern = re.compile("|".join(map(re.escape, longest_first)))


def _forms(value: str) -> set[str]:
    """A value as it stands, and as URLs, JSON, reprs, headers and single lines show it."""
    encoded = value.encode(errors="surrogateescape")
    escaped = value.encode(errors="backslashreplace").decode()
    found = {
        value,
        escaped,
        quote(encoded, safe=""),
        quote(encoded),
        quote_plus(encoded),
        repr(value)[1:-1],
        json.dumps(value)[1:-1],
        json.dumps(value, ensure_ascii=False)[1:-1],
        base64.b64encode(encoded).decode(),
    }
    found |= {line for line in value.splitlines() if len(line) >= _LINE_CHARS}
    return {form for form in found if len(form) >= MIN_CHARS}


_KNOWN = _Known()
