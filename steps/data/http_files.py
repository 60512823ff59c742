"""Files behind http(s) URLs: what a server says of one, and its bytes from any place on.

fsspec's own reader neither asks again nor reads on where a body broke off, so files are read with
the standard library here. Refusals come as the errors of files, and are final; whatever may pass
by itself is an `Interruption`.
"""

from __future__ import annotations

import base64
import http.client
import re
import socket
import ssl
import urllib.error
import urllib.request
from email.utils import parsedate_to_datetime
from typing import IO, TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote, unquote, urlsplit

from pipeline.provenance import version
from pipeline.redaction import redacted
from steps.data.patience import Interruption

if TYPE_CHECKING:
    from email.message import Message

_TIMEOUT_S = 60
_GONE = (404, 410)
_FORBIDDEN = (401, 403)
PASSING_STATUS = (408, 425, 429)  # a later try may get another
_FIRST_SERVER_ERROR = 500
_NO_HEAD = (403, 405, 501)  # 403: a URL signed for GET alone
_PARTIAL = 206
_RANGE = re.compile(r"bytes (\d+)-\d+/(\d+|\*)")
_RATE_LIMIT = re.compile(r"\bt=(\d+)")
_DIGESTS = re.compile(r"\b(sha-256|crc32c|md5)=:?([A-Za-z0-9+/]+)", re.IGNORECASE)
"""RFC 9530 (`Repr-Digest: md5=:...:`), RFC 3230 (`Digest: MD5=...`) and `x-goog-hash`."""
_ALLOWED = "%/:=&?~#+!$,;'@()*[]"  # in a URL; what is quoted already stays
_BEST_FIRST = ("sha256", "crc32c", "md5")


class RefusedError(OSError):
    """A final no: of a server, with its status, or of the connection."""

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


class Body(NamedTuple):
    """An open file that stands at byte `start`; size and tag are those of the whole file now."""

    stream: IO[bytes]
    start: int
    size_bytes: int | None
    tag: str | None


def describe(url: str) -> dict[str, Any]:
    """Size, entity tag, checksums and date of a file, as far as its server tells.

    Raises:
        OSError: it is not there, or not for us.
        Interruption: the server may tell later.

    """
    try:
        headers = _headers(url, "HEAD")
    except RefusedError as error:
        if error.status not in _NO_HEAD:
            raise
        headers = _headers(url, "GET")
    else:
        if headers["Content-Length"] is None:
            headers = _headers(url, "GET")
    found: dict[str, Any] = {"checksum": _checksum(headers)}
    for name, header in (("ETag", "ETag"), ("modified", "Last-Modified")):
        if headers[header]:
            found[name] = headers[header]
    if headers["Content-Length"]:
        found["size"] = int(headers["Content-Length"])
    return found


def open_from(url: str, start: int, tag: str | None) -> Body:
    """The bytes from `start` on, or from 0 where the server takes no ranges or has another file.

    Raises:
        OSError: the file is not there, not for us, or ends before `start`.
        Interruption: the server may send them later.

    """
    headers = {}
    if start:
        headers["Range"] = f"bytes={start}-"
        if tag is not None:
            headers["If-Range"] = f'"{tag}"'
    response = _ask(url, "GET", headers)
    now = response.headers["ETag"]
    size = response.headers["Content-Length"]
    total = None if size is None else int(size)
    begins = 0
    if response.status == _PARTIAL:
        found = _RANGE.match(response.headers["Content-Range"] or "")
        begins = int(found[1]) if found else start
        known = found is not None and found[2] != "*"
        total = int(found[2]) if found is not None and known else None
    return Body(response, begins, total, None if now is None else strong_tag(now))


def strong_tag(tag: str) -> str | None:
    """The text of an entity tag; None for a weak one: equal ones may stand for other bytes.

    >>> strong_tag('"a1"'), strong_tag('W/"a1"')
    ('a1', None)
    """
    return None if tag.startswith("W/") else tag.strip('"')


def _headers(url: str, method: str) -> Message:
    with _ask(url, method, {}) as response:
        headers: Message = response.headers
    return headers


def _ask(url: str, method: str, headers: dict[str, str]) -> Any:
    request = urllib.request.Request(  # noqa: S310 - callers pass http(s) only
        _without_credentials(url),
        method=method,
        headers={"Accept-Encoding": "identity", "User-Agent": f"seaglass/{version()}", **headers},
    )
    credentials = _credentials(url)
    if credentials is not None:  # never sent on to where the server redirects
        request.add_unredirected_header("Authorization", f"Basic {credentials}")
    try:
        return urllib.request.urlopen(request, timeout=_TIMEOUT_S)  # noqa: S310 - the same
    except urllib.error.HTTPError as error:
        with error:
            raise _status_error(error) from None
    except (OSError, http.client.HTTPException) as error:
        raise _connection_error(error) from error


def _status_error(error: urllib.error.HTTPError) -> Exception:
    reason = f"HTTP {error.code} {error.reason}".strip()
    if error.code in _GONE:
        return FileNotFoundError(reason)
    if error.code in _FORBIDDEN:
        return RefusedError(reason, error.code)
    if error.code in PASSING_STATUS or error.code >= _FIRST_SERVER_ERROR:
        return Interruption(reason, _asked_wait_s(error.headers))
    return RefusedError(reason, error.code)


def _connection_error(error: Exception) -> Exception:
    reason = error.reason if isinstance(error, urllib.error.URLError) else error
    text = redacted(str(reason) or type(reason).__name__)
    is_final = isinstance(reason, ssl.SSLCertVerificationError) or (
        isinstance(reason, socket.gaierror) and reason.errno != socket.EAI_AGAIN
    )
    return RefusedError(text) if is_final else Interruption(text)


def _asked_wait_s(headers: Message) -> float | None:
    """The wait that a server asks for; a date counts from the server's own clock."""
    asked = headers["Retry-After"]
    if asked is None:
        limit = _RATE_LIMIT.search(headers["RateLimit"] or "")
        return float(limit[1]) if limit else None
    if asked.strip().isdigit():
        return float(asked)
    try:
        until, now = parsedate_to_datetime(asked), parsedate_to_datetime(headers["Date"] or "")
    except ValueError:
        return None
    return max(0.0, (until - now).total_seconds())


def _checksum(headers: Message) -> str | None:
    """The best checksum of the whole file that a server sends, as `algorithm:hex`."""
    offered = []
    for name in ("Repr-Digest", "Digest"):
        offered += _DIGESTS.findall(headers[name] or "")
    if headers["Content-MD5"]:
        offered.append(("md5", headers["Content-MD5"]))
    # GCS hashes what it stores, and unpacks on the way what was stored as gzip
    if (headers["X-Goog-Stored-Content-Encoding"] or "identity") == "identity":
        for value in headers.get_all("X-Goog-Hash", []):
            offered += _DIGESTS.findall(value)
    found = {name.lower().replace("-", ""): value for name, value in reversed(offered)}
    best = next((name for name in _BEST_FIRST if name in found), None)
    return None if best is None else f"{best}:{base64.b64decode(found[best] + '==').hex()}"


def _without_credentials(url: str) -> str:
    parts = urlsplit(quote(url, safe=_ALLOWED))
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], fragment="").geturl()


def _credentials(url: str) -> str | None:
    user, at, _ = urlsplit(url).netloc.rpartition("@")
    return base64.b64encode(unquote(user).encode()).decode() if at else None
