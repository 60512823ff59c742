"""`seaglass serve`: the store's page on this machine."""

from __future__ import annotations

from contextlib import suppress

import click

from pipeline.cli.options import existing, json_option, options, print_json, store_option
from pipeline.digests import RememberedDigests
from pipeline.errors import UsageError
from pipeline.site.pages import Pages
from pipeline.site.remembered import remembering
from pipeline.site.server import PageServer


@click.command(short_help="Show the store in a browser.")
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    default=0,
    help="The port to listen on; 0 takes a free one.",
    show_default=True,
)
@options(store_option, json_option)
def serve(*, port: int, store_url: str, as_json: bool) -> int:
    """Show the store in a browser: runs, failures, artifacts and lineage, live.

    Listens on 127.0.0.1 alone, until it is interrupted.
    """
    pages = Pages(remembering(existing(store_url)), RememberedDigests())
    try:
        server = PageServer(pages, port=port)
    except OSError as error:
        msg = f"--port {port}: {error.strerror}; give another one, or 0 for a free one"
        raise UsageError(msg) from error
    with server, suppress(KeyboardInterrupt):  # the one way in which it ends
        if as_json:
            print_json({"url": server.page_url})
        else:
            click.echo(f"{server.page_url}  (Ctrl-C ends it)")
        server.serve_forever()
    return 0
