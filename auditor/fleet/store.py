"""Recordings and rows in other places: whatever fsspec opens (S3, MinIO, SFTP, ...), where it is installed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO, cast

from auditor.errors import Stop
from auditor.recording.archive import TOTAL_LIMIT

ENTRIES = 1_000_000


class NoStore(Stop):
    """A URL that cannot be opened, and why."""


def is_url(name: str) -> bool:
    """Is it for fsspec to open?"""
    return "://" in name


def content(url: str) -> bytes:
    """All of it, where it is not larger than a recording may be. Raises NoStore."""
    with opened(url, "rb") as file:
        data = file.read(TOTAL_LIMIT + 1)
    if len(data) > TOTAL_LIMIT:
        raise NoStore(f"{url}: more than {TOTAL_LIMIT >> 20} MiB")
    return data


def opened(url: str, mode: str) -> BinaryIO:
    """A file to read or to write. Raises NoStore."""
    try:
        return cast(BinaryIO, _fsspec().open(url, mode).open())
    except NoStore:
        raise
    except Exception as error:  # each kind of store has errors of its own
        raise NoStore(f"{url}: {type(error).__name__}: {error}") from None


def listed(url: str) -> Iterator[tuple[str, str]]:
    """(URL, what changes when its content does) of each file that a pattern, or a folder, means. Raises NoStore."""
    try:
        system, path = _fsspec().core.url_to_fs(url)
        starred = any(char in path for char in "*?[")
        found = system.glob(path, detail=True) if starred else system.find(path, detail=True)
        if not starred and not found and system.exists(path):
            found = {path: system.info(path)}
    except NoStore:
        raise
    except Exception as error:
        raise NoStore(f"{url}: {type(error).__name__}: {error}") from None
    if len(found) > ENTRIES:
        raise NoStore(f"{url}: more than {ENTRIES:,} files")
    for name, info in sorted(found.items()):
        if info.get("type") == "file":
            stamp = [str(info.get(key, "")) for key in ("size", "ETag", "mtime", "LastModified")]
            yield system.unstrip_protocol(name), ":".join(stamp)


def _fsspec() -> Any:
    try:
        import fsspec
    except ImportError:
        raise NoStore("URLs need fsspec (pip install fsspec, and s3fs for S3)") from None
    return fsspec
