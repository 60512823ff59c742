"""`seaglass import`: existing data or a checkpoint becomes an artifact."""

from __future__ import annotations

import click

from pipeline.cli.copying import copying
from pipeline.cli.options import console, json_option, opened, options, print_json, store_option
from pipeline.cli.text import size
from pipeline.keeping.importing import Wanted, import_files


@click.command(name="import", short_help="Import a file or folder as an artifact with a name.")
@click.argument("name")
@click.argument("place", metavar="PATH_OR_URL")
@click.option("--licence", metavar="SPDX", help="Its licence, for example CC-BY-4.0.")
@click.option("--version", metavar="V", help="Which version of it this is.")
@click.option("--url", metavar="ORIGIN", help="The page or address that it came from at first.")
@click.option("--note", metavar="TEXT", help="What else should be known of it.")
@options(store_option, json_option)
def import_(
    *,
    name: str,
    place: str,
    licence: str | None,
    version: str | None,
    url: str | None,
    note: str | None,
    store_url: str,
    as_json: bool,
) -> int:
    """Import the file or folder at PATH_OR_URL as artifact NAME, with its provenance.

    It is copied and hashed in one pass. The line that is printed names it in a recipe, by content.
    """
    wanted = Wanted(name=name, place=place, licence=licence, version=version, url=url, note=note)
    screen = console()
    with copying(screen, quiet=as_json) as progress:
        arrival = import_files(opened(store_url), wanted, progress=progress)
    record = arrival.record
    line = f"imported({record.content_digest!r}, name={name!r})"
    row = {
        "name": name,
        "content_digest": record.content_digest,
        "action_key": record.action_key,
        "attempt": arrival.attempt,
        "num_files": record.num_files,
        "size_bytes": record.size_bytes,
        "is_new": arrival.is_new,
        "line": line,
    }
    if as_json:
        print_json(row)
        return 0
    what = f"{size(record.size_bytes)} in {record.num_files:,} files"
    state = "imported" if arrival.is_new else "was here already, the same bytes"
    screen.print(f"{name}: {what}, {state}. In a recipe:", markup=False, soft_wrap=True)
    screen.print("  from pipeline.imported import imported", markup=False)
    screen.print(f"  {line}", markup=False, soft_wrap=True)
    return 0
