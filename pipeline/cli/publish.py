"""`seaglass publish`: the store's page as static files."""

from __future__ import annotations

from dataclasses import asdict

import click

from pipeline.cli.options import existing, json_option, options, print_json, store_option
from pipeline.cli.text import size
from pipeline.digests import RememberedDigests
from pipeline.redaction import redacted, redacted_value
from pipeline.site.pages import Pages
from pipeline.site.publish import publish_site


@click.command(short_help="Write the store's page as static files.")
@click.option(
    "--to",
    "target",
    required=True,
    metavar="URL",
    help="Where the page is written: a folder, gs://..., s3://...",
)
@options(store_option, json_option)
def publish(*, target: str, store_url: str, as_json: bool) -> int:
    """Write the store's page as static files; a second time, only what has changed.

    Whoever may read the files sees it in a browser: there is no server and no login. Hosts, users,
    home folders, addresses and secrets are left out.
    """
    digests = RememberedDigests()
    done = publish_site(Pages(existing(store_url), digests), target)
    digests.save()
    if as_json:
        print_json(redacted_value(asdict(done)))
    else:
        what = f"{done.num_documents:,} documents, {done.num_written:,} files written"
        click.echo(f"{redacted(done.url)}/index.html  ({what}, {size(done.size_bytes)} in all)")
    return 0
