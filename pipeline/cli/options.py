"""Options that several verbs share, and what they open."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource
from rich.console import Console

from pipeline.errors import UsageError
from pipeline.redaction import redacted
from pipeline.store import layout
from pipeline.store.store import Store, open_store

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

DEFAULT_STORE = ".seaglass"
NARROW = 80
_TYPED_STORES = f"{__name__}.typed_stores"
_COMMAND = re.compile(r"(?<=: )seaglass ([^;,()\n]*[^;,()\n ])")

store_option = click.option(
    "--store",
    "store_url",
    envvar="SEAGLASS_STORE",
    default=DEFAULT_STORE,
    show_default=True,
    show_envvar=True,
    metavar="URL",
    help="Where artifacts lie: a folder, gs://..., s3://...",
)
from_option = click.option(
    "--from",
    "upstream",
    multiple=True,
    envvar="SEAGLASS_FROM",
    show_envvar=True,
    metavar="URL",
    help="A store that is read after one's own, and never written. May be given again.",
)
frozen_option = click.option(
    "--frozen", is_flag=True, help="Take the sources as the last run saw them; look at none."
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")
set_option = click.option(
    "--set", "settings", multiple=True, metavar="NAME=VALUE", help="A parameter of the recipe."
)
on_option = click.option(
    "--on",
    "where",
    default="local",
    show_default=True,
    metavar="inline|local|ADDRESS",
    help="Run in this process, on a Ray of this machine, or on a Ray cluster.",
)


def existing(store_url: str, upstream: Sequence[str] = ()) -> Store:
    """Open a store to ask or keep what it holds: a mistyped one must not answer as an empty one.

    Whoever reads from upstream may have none of their own yet.
    """
    store = opened(store_url, upstream)
    if not upstream and store.read_own(layout.FORMAT_KEY) is None:
        if is_default(store_url):
            msg = f"the store {store.url} holds none yet; fill it: seaglass run RECIPE"
            raise UsageError(msg)
        msg = (
            f"no store at {store.url} ({layout.FORMAT_KEY} is missing); check --store, "
            "or start one there: seaglass run RECIPE"
        )
        raise UsageError(msg)
    return store


def is_default(store_url: str) -> bool:
    """Whether a store lies where it does unless told otherwise: no one has mistyped that."""
    return Path(store_url).absolute() == Path(DEFAULT_STORE).absolute()


def opened(store_url: str, upstream: Sequence[str] = ()) -> Store:
    """Open a store, there or not, that outlives this command. Opening writes nothing."""
    if store_url.startswith("memory://"):
        msg = f"--store {store_url} would be gone when this command ends; give a folder or a bucket"
        raise UsageError(msg)
    context = click.get_current_context(silent=True)
    if context is not None:
        context.meta[_TYPED_STORES] = _typed_stores()
    return open_store(store_url, upstream)


def console() -> Console:
    """The screen; 80 columns where there is none."""
    # Bound to the stdout of now: while a body runs in this process, `sys.stdout` is its log.
    found = Console(file=sys.stdout, highlight=False, soft_wrap=False)
    if not found.is_terminal:
        found = Console(file=sys.stdout, highlight=False, width=max(NARROW, found.width))
    return found


def program() -> str:
    """How this command was called, so that the next one can be typed as it is shown."""
    called = Path(sys.argv[0])
    if called.name != "seaglass" or shutil.which("seaglass") == str(called.absolute()):
        return "seaglass"
    place = os.path.relpath(called)
    return place if not place.startswith("..") else str(called)


def next_command(words: str) -> str:
    """A command to type next: as this one was called, and with the stores that were typed."""
    return redacted(f"{program()} {words}{_typed_stores()}")


def completed(message: str, context: click.Context) -> str:
    """An error's message whose commands can be typed as they stand.

    What raises it knows neither the program nor its options; a command follows a colon and ends
    with its clause.
    """
    stores = context.meta.get(_TYPED_STORES, "")
    return _COMMAND.sub(lambda found: f"{program()} {found[1]}{stores}", message)


def _typed_stores() -> str:
    """`--store` and `--from` as they were typed."""
    words = []
    for name, option in (("store_url", "--store"), ("upstream", "--from")):
        given = _typed(name)
        urls = [given] if isinstance(given, str) else given
        words += [f" {option} {shlex.quote(url)}" for url in urls]
    return "".join(words)


def _typed(name: str) -> str | tuple[str, ...]:
    """What was typed for an option, of this verb or of the one that called it."""
    context = click.get_current_context(silent=True)
    while context is not None:
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            found: str | tuple[str, ...] = context.params[name]
            return found
        context = context.parent
    return ()


def print_json(value: Any) -> None:
    """Machine output: one JSON document."""
    click.echo(json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False))


def options(*decorators: Callable[..., Any]) -> Callable[..., Any]:
    """Several options as one decorator, in the order given."""

    def apply(function: Callable[..., Any]) -> Callable[..., Any]:
        for decorator in reversed(decorators):
            function = decorator(function)
        return function

    return apply
