"""Which protocols of storage there are; apart from `paths`, for recipes need no fsspec."""

from __future__ import annotations

import difflib

import fsspec

from pipeline.errors import UsageError


def checked_protocol(url: str) -> str:
    """A URL that some storage answers to, as far as its protocol tells, or an error.

    >>> checked_protocol("gs://bucket/x")
    'gs://bucket/x'
    """
    protocol = url.partition("://")[0].rpartition("::")[2]
    if protocol in fsspec.available_protocols():
        return url
    near = difflib.get_close_matches(protocol, fsspec.available_protocols(), n=1)
    hint = f"did you mean {near[0]}://?" if near else "give a path, or gs://, s3://, https://..."
    msg = f"{url}: no storage is known as {protocol}://; {hint}"
    raise UsageError(msg)
