"""`seaglass cancel`: stop a run from anywhere that sees its store."""

from __future__ import annotations

import click

from pipeline.asking.runs import find_run
from pipeline.cli.options import console, existing, json_option, options, print_json, store_option
from pipeline.running.cancel import CANCELLED, cancel_run, cancellation, described, wait_for_end
from pipeline.store.claims import Observer


@click.command(short_help="Stop a run, from any machine.")
@click.argument("run")
@click.option("--reason", default="by hand", metavar="TEXT", help="Why; kept with the run.")
@options(store_option, json_option)
def cancel(*, run: str, reason: str, store_url: str, as_json: bool) -> int:
    """Stop RUN (an id or a unique beginning of it, see `ls --runs`), and wait until it has ended.

    Its driver looks every few seconds, stops the steps and ends with code 1. Where the driver is
    gone, the run is closed in its place. What is finished is kept.
    """
    store = existing(store_url)
    run_id = find_run(store, run)
    is_first = cancel_run(store, run_id, reason=reason)
    by = cancellation(store, run_id)
    screen = console()
    if not as_json:
        start = "asked to stop" if is_first else f"was {described(by)}, before"
        screen.print(f"run {run_id}: {start}; waiting for its end", markup=False, soft_wrap=True)
    end = wait_for_end(store, run_id, Observer(store))
    if as_json:
        print_json({"run": run_id, "state": end["state"], "by": by, "is_first": is_first})
    else:
        screen.print(f"run {run_id}: {end['state']}", markup=False, soft_wrap=True)
    return 0 if end["state"] == CANCELLED else 1
