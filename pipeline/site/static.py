"""The files of the page that are the same for every store: HTML, CSS, JavaScript and an icon."""

from __future__ import annotations

from pathlib import Path

# A browser refuses modules of any other type, and a bucket sends what it was told.
CONTENT_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".json": "application/json",
}


def static_files() -> dict[str, bytes]:
    """Every file by its name on the page; read anew, so that an edit shows at once."""
    found = {path.name: path for path in _folder().iterdir() if path.suffix in CONTENT_TYPES}
    return {name: found[name].read_bytes() for name in sorted(found)}


def content_type(name: str) -> str:
    """What a server or a bucket must say that a file is."""
    return CONTENT_TYPES[name[name.rindex(".") :]]


def _folder() -> Path:
    """A wheel carries the files inside the package, a checkout has them beside it."""
    package = Path(__file__).resolve().parent.parent
    inside = package / "web"
    return inside if inside.is_dir() else package.parent / "web"
