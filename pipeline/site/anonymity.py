"""Strikes out of texts what names a person or a machine.

The documents of the page are allow-lists: hosts, users, argv and the environment have no field
there. What is left is free text that people's code wrote (config, log lines, messages). Secrets
were masked when it was kept; this is the last gate before it leaves the store, so they are masked
once more, with what only readers outside need not see.
"""

from __future__ import annotations

import getpass
import ipaddress
import math
import platform
import re
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pipeline.redaction import MASK, names_a_secret, redacted

if TYPE_CHECKING:
    from collections.abc import Iterable

HOST, USER, ADDRESS, HOME = "(host)", "(user)", "(address)", "~"
NAMES_NOBODY = frozenset({"", "root", "user", "unknown", "localhost", "admin", "nobody", "runner"})

_USERINFO = re.compile(rf"(?<=://){re.escape(MASK)}@")
_ASSIGNED = re.compile(r"\b([\w-]+)([\"']?\s*[=:]\s*[\"']?)([^\s\"'&,;)}\]<]{6,})")
_HOME = re.compile(
    r"(?:/[\w.-]+)*?/(?:home|Users)/[^/\s:\"',)]+|/root(?=/|\b)|[A-Z]:\\Users\\[^\\\s]+"
)
# A frame of a traceback: its last two parts say which file, the rest says whose machine.
_FRAME = re.compile(r'(?<=File ")/[^"]*?(?=[^/"]+/[^/"]+", line)')
_IPV4 = re.compile(r"(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?![\w]|\.\d)")
_IPV6 = re.compile(r"(?<![\w:.])[0-9A-Fa-f]{0,4}(?::[0-9A-Fa-f]{0,4}){2,7}(?![\w:])")


@dataclass(frozen=True, kw_only=True)
class Anonymizer:
    """Knows the names of hosts and users that a store's texts may hold."""

    hosts: frozenset[str] = frozenset()
    users: frozenset[str] = frozenset()

    @classmethod
    def of_this_process(cls) -> Anonymizer:
        """One that knows this machine and this user."""
        return cls().knowing(hosts=[platform.node()], users=[_user()])

    def knowing(self, *, hosts: Iterable[str] = (), users: Iterable[str] = ()) -> Anonymizer:
        """One that knows more names."""
        short = {host.split(".")[0] for host in hosts}
        return replace(
            self,
            hosts=self.hosts | (short - NAMES_NOBODY),
            users=self.users | (frozenset(users) - NAMES_NOBODY),
        )

    def text(self, text: str) -> str:
        """The text without secrets and without what names somebody.

        >>> Anonymizer().text("read gs://me:pw@bucket/x from 10.1.2.3")
        'read gs://bucket/x from (address)'
        """
        text = _USERINFO.sub("", redacted(text))
        text = _ASSIGNED.sub(_masked, text)
        text = _HOME.sub(HOME, _FRAME.sub("", text))
        text = _IPV6.sub(_address, _IPV4.sub(_address, text))
        for pattern, stand_in in self._names:
            text = pattern.sub(stand_in, text)
        return text

    def value(self, value: Any) -> Any:
        """A JSON value with every text in it anonymous, keys too."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {self.text(key): self.value(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.value(item) for item in value]
        if isinstance(value, float) and not math.isfinite(value):
            return str(value)  # JSON has no number for it
        return value

    @cached_property
    def _names(self) -> list[tuple[re.Pattern[str], str]]:
        named = [(name, rf"{re.escape(name)}(?:\.[\w-]+)*", HOST) for name in self.hosts]
        named += [(name, re.escape(name), USER) for name in self.users]
        longest_first = sorted(named, key=lambda row: (-len(row[0]), row[0]))
        return [
            (re.compile(rf"(?<![\w-]){pattern}(?![\w-])", re.IGNORECASE), stand_in)
            for _, pattern, stand_in in longest_first
        ]


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return ""


def _masked(match: re.Match[str]) -> str:
    name, between, value = match.groups()
    is_secret = names_a_secret(name) and value != MASK and not value.isdecimal()
    return f"{name}{between}{MASK}" if is_secret else match[0]


def _address(match: re.Match[str]) -> str:
    try:
        address = ipaddress.ip_address(match[0])
    except ValueError:
        return match[0]
    return match[0] if address.is_loopback or address.is_unspecified else ADDRESS
