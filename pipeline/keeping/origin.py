"""Where an import takes its files from: a file or a folder on this machine, or behind a URL.

An origin is listed before and after it is read; what changed in between is told by size, times and
whatever else the storage says of a file. Only plain files can be part of an artifact, so links and
devices are refused by name rather than followed or left out.
"""

from __future__ import annotations

import os
import stat
import unicodedata
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol, cast
from urllib.parse import unquote, urlsplit

import fsspec

from pipeline.errors import SeaglassError, SourceError, UsageError
from pipeline.paths import checked_path
from pipeline.protocols import checked_protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_LINK = "; copy the origin with links resolved first, for example: cp -rL"
_PLACES = ("name", "key", "url")  # of a remote file; not what tells that it changed


@dataclass(frozen=True, kw_only=True)
class OriginFile:
    """One file: its logical path, where it lies, and what a change of it would move."""

    path: str
    location: str
    size_bytes: int
    state: tuple[Any, ...]


class Origin(Protocol):
    """A place that files are imported from."""

    @property
    def url(self) -> str:
        """The place, as a user would write it."""
        ...

    def files(self) -> dict[str, OriginFile]:
        """Every file by its logical path, as of now.

        Raises:
            UsageError: there is none.
            SourceError: what is there cannot be read, or cannot be part of an artifact.

        """
        ...

    def open(self, file: OriginFile) -> BinaryIO:
        """The bytes of one file."""
        ...


def open_origin(place: str) -> Origin:
    """The origin that a path or a URL means."""
    if not place:
        msg = "the origin of an import is empty; give a path or a URL"
        raise UsageError(msg)
    if "://" not in place or place.startswith("file://"):
        return _LocalOrigin(Path(place.removeprefix("file://")).expanduser().absolute())
    try:
        filesystem, root = fsspec.core.url_to_fs(checked_protocol(place))
    except UsageError:
        raise
    except Exception as error:  # every filesystem has errors of its own
        msg = f"origin {place} cannot be opened: {error}"
        raise SourceError(msg) from error
    return _RemoteOrigin(place, filesystem, root.rstrip("/"))


class _LocalOrigin:
    """A file or a folder of this machine. A link is followed only if it is named itself."""

    def __init__(self, root: Path) -> None:
        self._root = root

    @property
    def url(self) -> str:
        return str(self._root)

    def files(self) -> dict[str, OriginFile]:
        try:
            return _by_path(self.url, self._found())
        except OSError as error:
            msg = f"origin {self.url} cannot be read: {error}"
            raise SourceError(msg) from error

    def open(self, file: OriginFile) -> BinaryIO:
        return Path(file.location).open("rb")

    def _found(self) -> Iterator[OriginFile]:
        try:
            found = self._root.stat()
        except (FileNotFoundError, NotADirectoryError) as error:
            raise _nothing_at(self.url) from error
        if stat.S_ISREG(found.st_mode):
            yield _described(self._root.name, str(self._root), found)
            return
        if not stat.S_ISDIR(found.st_mode):
            msg = f"origin {self.url} is neither a file nor a folder"
            raise SourceError(msg)
        folders = [str(self._root)]
        while folders:
            with os.scandir(folders.pop()) as entries:
                below = list(entries)
            folders += [entry.path for entry in below if entry.is_dir(follow_symlinks=False)]
            for entry in below:
                if not entry.is_dir(follow_symlinks=False):
                    relative = Path(entry.path).relative_to(self._root).as_posix()
                    yield _plain(relative, entry)


class _RemoteOrigin:
    """A file, or all files below a prefix, on any filesystem that fsspec knows."""

    def __init__(self, url: str, filesystem: Any, root: str) -> None:
        self.url = url
        self._filesystem = filesystem
        self._root = root

    def files(self) -> dict[str, OriginFile]:
        self._filesystem.invalidate_cache()
        try:
            info = self._filesystem.info(self._root)
            if info["type"] == "file":
                name = unquote(urlsplit(self.url).path.rpartition("/")[2])
                return _by_path(self.url, [_of_info(name, info)])
            found = self._filesystem.find(self._root, detail=True)
        except SeaglassError:
            raise
        except FileNotFoundError as error:
            raise _nothing_at(self.url) from error
        except Exception as error:  # the same
            msg = f"origin {self.url} cannot be read: {str(error) or type(error).__name__}"
            raise SourceError(msg) from error
        rows = {name: info for name, info in found.items() if not name.endswith("/")}
        cut = len(self._root) + 1
        return _by_path(self.url, (_of_info(name[cut:], rows[name]) for name in rows))

    def open(self, file: OriginFile) -> BinaryIO:
        return cast("BinaryIO", self._filesystem.open(file.location, "rb"))


def changes(before: dict[str, OriginFile], after: dict[str, OriginFile]) -> list[str]:
    """What a second listing says otherwise, a file each."""
    return [
        *(f"{path} changed" for path in before if path in after and before[path] != after[path]),
        *(f"{path} appeared" for path in after if path not in before),
        *(f"{path} vanished" for path in before if path not in after),
    ]


def _nothing_at(url: str) -> UsageError:
    return UsageError(f"nothing lies at {url}; import takes a file, a folder or a URL")


def _plain(relative: str, entry: os.DirEntry[str]) -> OriginFile:
    if entry.is_symlink():
        msg = f"{entry.path!r} is a symbolic link, and an artifact has none{_LINK}"
        raise SourceError(msg)
    if not entry.is_file(follow_symlinks=False):
        msg = f"{entry.path!r} is no plain file but a device, pipe or socket; leave it out"
        raise SourceError(msg)
    return _described(relative, entry.path, entry.stat(follow_symlinks=False))


def _described(path: str, location: str, found: os.stat_result) -> OriginFile:
    state = (found.st_mtime_ns, found.st_ctime_ns, found.st_ino)
    return OriginFile(path=path, location=location, size_bytes=found.st_size, state=state)


def _of_info(path: str, info: dict[str, Any]) -> OriginFile:
    if info.get("islink") or info.get("type") != "file":
        msg = f"{info['name']!r} is a {info.get('type')}, and an artifact holds plain files{_LINK}"
        raise SourceError(msg)
    if info.get("size") is None:
        msg = f"the server of {info['name']} does not say how long it is; fetch it yourself first"
        raise SourceError(msg)
    told = {key: str(value) for key, value in info.items() if key not in _PLACES}
    state = tuple(sorted(told.items()))
    return OriginFile(path=path, location=info["name"], size_bytes=int(info["size"]), state=state)


def _by_path(url: str, files: Iterable[OriginFile]) -> dict[str, OriginFile]:
    found: dict[str, OriginFile] = {}
    for file in files:
        path = unicodedata.normalize("NFC", file.path)
        try:
            checked_path(path)
        except UsageError as error:
            msg = f"origin {url}: {error}; rename it before the import"
            raise UsageError(msg) from error
        if path in found:
            msg = f"origin {url}: two files would both be named {path!r}; rename one of them"
            raise UsageError(msg)
        found[path] = file
    if not found:
        msg = f"origin {url} holds no file, and an artifact holds at least one"
        raise UsageError(msg)
    return dict(sorted(found.items()))
