"""`seaglass pin`: keep an artifact's bytes whatever its name points at."""

from __future__ import annotations

import click

from pipeline.asking.artifacts import find_record
from pipeline.cli.options import console, existing, json_option, options, print_json, store_option
from pipeline.cli.text import short
from pipeline.errors import UsageError
from pipeline.provenance import person
from pipeline.store import pins


@click.command(short_help="Keep the bytes of an artifact, whatever gc would do.")
@click.argument("artifact")
@click.option("--remove", is_flag=True, help="Take the pin back.")
@click.option("--reason", default="by hand", metavar="TEXT", help="Why; shown with the artifact.")
@options(store_option, json_option)
def pin(*, artifact: str, remove: bool, reason: str, store_url: str, as_json: bool) -> int:
    """Keep the bytes of ARTIFACT (a name, name@label or digest prefix): gc never evicts them."""
    store = existing(store_url)
    record = find_record(store, artifact)
    if remove and not pins.unpin(store, record, reason=reason, by=person()):
        msg = f"{artifact} ({short(record.content_digest)}) has no pin in {store.url}; see: show"
        raise UsageError(msg)
    has_bytes = remove or pins.pin(store, record, reason=reason, by=person())
    if as_json:
        row = {"artifact": record.title, "content_digest": record.content_digest}
        print_json({**row, "is_pinned": not remove, "has_bytes": has_bytes, "reason": reason})
        return 0
    what = "is not pinned any more" if remove else "is pinned"
    text = f"{record.title} ({short(record.content_digest)}) {what}: {reason}"
    if not has_bytes:
        text += "; its bytes are gone: run its recipe with a step that reads it, or rerun it"
    console().print(text, markup=False, soft_wrap=True)
    return 0
