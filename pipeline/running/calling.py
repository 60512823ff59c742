"""Calls people's code: finds a function, checks its text, and holds it to ending properly."""

from __future__ import annotations

import importlib
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pipeline.code.planned_imports import differing
from pipeline.errors import CodeError, StepError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def load_function(name: str) -> Callable[..., Any]:
    """Import `package.module:function`."""
    module_name, _, function_name = name.partition(":")
    found = getattr(importlib.import_module(module_name), function_name, None)
    if not callable(found):
        msg = f"body {name}: module {module_name} has no function {function_name!r}"
        raise CodeError(msg)
    return found  # type: ignore[no-any-return]  # checked to be callable


def check_modules(modules: dict[str, str]) -> None:
    """Make sure that what was imported is what was digested.

    Raises:
        CodeError: a module was imported from elsewhere, or was edited since it was planned.

    """
    for name, file in differing(modules).items():
        msg = (
            f"module {name} was imported from {file}, whose text is not the one that was "
            "planned; it was edited meanwhile, or another copy shadows it: run again"
        )
        raise CodeError(msg)


@contextmanager
def no_exit() -> Iterator[None]:
    """A body ends by returning or by an error; it does not end the process that it runs in.

    A process that the body forked ends here whatever it meant to do next: it is no owner of the
    claim, so it must neither publish nor close the attempt.
    """
    pid = os.getpid()
    try:
        yield
    except (Exception, KeyboardInterrupt):
        raise
    except BaseException as error:
        _end_fork(pid, error)
        msg = f"the body left with {error!r}; raise an exception that says what is wrong"
        raise StepError(msg) from error
    finally:
        _end_fork(pid, None)


def _end_fork(pid: int, error: BaseException | None) -> None:
    """End this process, by the code that it asked for, if it is not the one of that pid."""
    if os.getpid() != pid:
        code = error.code if isinstance(error, SystemExit) else 1
        os._exit(code if isinstance(code, int) else int(code is not None))
