"""`seaglass export`: an artifact's files leave the store as a plain folder."""

from __future__ import annotations

from pathlib import Path

import click

from pipeline.asking.artifacts import artifact_of, find_record
from pipeline.cli.copying import copying
from pipeline.cli.options import (
    console,
    existing,
    from_option,
    json_option,
    options,
    print_json,
    store_option,
)
from pipeline.cli.text import size
from pipeline.digests import RememberedDigests
from pipeline.keeping.exporting import export_files


@click.command(short_help="Copy the files of an artifact into a folder.")
@click.argument("artifact")
@click.argument("folder", type=click.Path(path_type=Path))
@options(store_option, from_option, json_option)
def export(
    *, artifact: str, folder: Path, store_url: str, upstream: tuple[str, ...], as_json: bool
) -> int:
    """Copy the files of ARTIFACT (a name, name@label or digest prefix), verified, into FOLDER.

    FOLDER must be new or empty. It gets all files or none.
    """
    store = existing(store_url, upstream)
    record = find_record(store, artifact)
    digests = RememberedDigests()
    screen = console()
    with copying(screen, quiet=as_json) as progress:
        export_files(artifact_of(store, record, digests), folder, progress=progress)
    digests.save()
    row = {
        "artifact": record.title,
        "content_digest": record.content_digest,
        "folder": str(folder),
        "num_files": record.num_files,
        "size_bytes": record.size_bytes,
    }
    if as_json:
        print_json(row)
        return 0
    what = f"{size(record.size_bytes)} in {record.num_files:,} files"
    screen.print(f"{artifact}: {what}, copied to {folder}", markup=False, soft_wrap=True)
    return 0
