"""The command `seaglass`. Verbs load when they are called, so that a cached run answers at once."""

from __future__ import annotations

import importlib
import io
import os
import signal
import sys
from importlib import metadata
from typing import TYPE_CHECKING, Any, cast

import click

from pipeline.errors import SeaglassError
from pipeline.provenance import version
from pipeline.redaction import redacted

if TYPE_CHECKING:
    from types import FrameType, TracebackType

VERBS = {
    "run": "pipeline.cli.run:run",
    "plan": "pipeline.cli.plan:plan",
    "rerun": "pipeline.cli.rerun:rerun",
    "promote": "pipeline.cli.promote:promote",
    "accept": "pipeline.cli.accept:accept",
    "cancel": "pipeline.cli.cancel:cancel",
    "import": "pipeline.cli.import_:import_",
    "export": "pipeline.cli.export:export",
    "ls": "pipeline.cli.ls:ls",
    "show": "pipeline.cli.show:show",
    "lineage": "pipeline.cli.lineage:lineage",
    "diff": "pipeline.cli.diff:diff",
    "why": "pipeline.cli.why:why",
    "verify": "pipeline.cli.verify:verify",
    "gc": "pipeline.cli.gc:gc",
    "pin": "pipeline.cli.pin:pin",
    "serve": "pipeline.cli.serve:serve",
    "publish": "pipeline.cli.publish:publish",
}
VERB_GROUP = "seaglass.verbs"
INTERRUPTED = 130


class _Verbs(click.Group):
    """Finds a verb by name among our own and those that packages register."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return [*VERBS, *sorted(entry.name for entry in metadata.entry_points(group=VERB_GROUP))]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        del ctx
        if cmd_name in VERBS:
            module, _, name = VERBS[cmd_name].partition(":")
            return cast("click.Command", getattr(importlib.import_module(module), name))
        for entry in metadata.entry_points(group=VERB_GROUP, name=cmd_name):
            return cast("click.Command", entry.load())
        return None

    def invoke(self, ctx: click.Context) -> Any:
        """Let the commands that an error names be typed as they stand."""
        try:
            return super().invoke(ctx)
        except SeaglassError as error:
            from pipeline.cli.options import completed  # noqa: PLC0415 - only on an error

            error.args = (completed(str(error), ctx), *error.args[1:])
            raise

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        """Say which verb may have been meant."""
        import_error = None
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            import_error = error
        import difflib  # noqa: PLC0415 - only on a wrong verb

        near = difflib.get_close_matches(args[0], self.list_commands(ctx), n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise click.UsageError(import_error.message + hint, ctx) from None


@click.group(cls=_Verbs, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(version(), prog_name="seaglass")
def cli() -> None:
    """Pretrain mixture-of-experts language models in the open.

    A recipe is a Python function that returns steps; each step runs once and its output is kept
    under the digest of everything that made it.
    """


def main() -> None:
    """Entry point: errors meant for people become one message and an exit code."""
    signal.signal(signal.SIGTERM, _interrupt)
    sys.excepthook = _show_masked
    _keep_stdout()
    debug = bool(os.environ.get("SEAGLASS_DEBUG")) or "--debug" in sys.argv
    arguments = [a for a in sys.argv[1:] if a != "--debug"]
    try:
        code = cli.main(args=arguments, prog_name="seaglass", standalone_mode=False)
    except SeaglassError as error:
        if debug:
            raise
        click.echo(f"error: {error}", err=True)
        sys.exit(error.exit_code)
    except click.ClickException as error:
        shown = io.StringIO()
        error.show(file=shown)
        click.echo(redacted(shown.getvalue()), err=True, nl=False)
        sys.exit(2)
    except (KeyboardInterrupt, click.Abort):
        click.echo("interrupted; what is finished is kept: run the same command to go on", err=True)
        sys.exit(INTERRUPTED)
    sys.exit(code if isinstance(code, int) else 0)


def _show_masked(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    """The traceback of `--debug` or of a bug, without secrets."""
    import traceback  # noqa: PLC0415 - only on a crash

    click.echo(
        redacted("".join(traceback.format_exception(kind, error, trace))), err=True, nl=False
    )


def _keep_stdout() -> None:
    """Keep stdout to the verb, which may be printing JSON.

    What a recipe or a body writes to descriptor 1 past `sys.stdout`, also from a program that it
    starts or from a library in C, goes to stderr.
    """
    out = sys.stdout
    if out is not sys.__stdout__ or out is None or sys.__stderr__ is None:
        return  # closed, or a stream that someone has put there
    out.flush()
    buffering = 1 if out.isatty() else -1
    own = os.dup(out.fileno())
    os.dup2(2, out.fileno())
    sys.stdout = os.fdopen(own, "w", buffering, encoding=out.encoding, errors=out.errors)


def _interrupt(number: int, frame: FrameType | None) -> None:
    """A polite end (SIGTERM) stops a run exactly as Ctrl-C does."""
    del number, frame
    raise KeyboardInterrupt
