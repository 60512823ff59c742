"""Executes a run with its table on the screen, and says what failed; for every verb that runs."""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING

import click

from pipeline.cli.live import LiveBoard
from pipeline.cli.options import console, next_command
from pipeline.running.launch import make_executor

if TYPE_CHECKING:
    from pipeline.planning.plan import Plan
    from pipeline.running.board import Board
    from pipeline.running.run import Run, RunResult

_LOG_LINES = 12


def execute(run: Run, plan: Plan, board: Board, *, where: str, quiet: bool) -> RunResult:
    """Execute a run where the user wants it; quietly, or with its table."""
    start = partial(make_executor, where, plan.codebase)
    if quiet:
        return run.execute(start)
    with LiveBoard(board, console()):
        return run.execute(start)


def print_failures(result: RunResult) -> None:
    """Say what failed, with the end of its log and the next move."""
    for failure in result.failures:
        click.echo(
            f"error: step {failure.title} failed ({failure.failure}): {failure.message}", err=True
        )
        for line in failure.log[-_LOG_LINES:]:
            click.echo(f"  | {line}", err=True)
    if result.run_id:
        command = next_command(f"show {result.run_id}")
        click.echo(f"What is finished is kept. Whole log: {command}", err=True)
    sys.stderr.flush()
