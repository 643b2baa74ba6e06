"""The members of a recording, from a folder or an archive. Its content is hostile: nothing is extracted to disk, names may not
climb, sizes are bounded, and whatever is wrong is a :class:`RecordingError` in one sentence.

The limits are those of writing as well (``recording.write``): what was written can be read back.
"""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Self

from auditor.errors import Stop
from auditor.host import given
from auditor.recording import text_archive

if TYPE_CHECKING:  # slow to import, and needed for archives only
    import gzip
    import tarfile

TOTAL_LIMIT = 256 << 20  # bytes of all members
MEMBER_LIMIT = 128 << 20
COUNT_LIMIT = 100_000  # members; some 30 a disk
ENTRY_LIMIT = 2 * COUNT_LIMIT  # of a folder: notes and reports may lie beside
HEADER_LIMIT, HEADERS_LIMIT = 8 << 10, 4 << 20  # bytes of one extended header of tar, and of all: zaudit writes none
FILLING = 1 << 20  # with which a tar archive ends: 10 KiB of ours, and the size in which it is asked for
MANIFEST, TRIAL = "recording.json", "trial.json"
ENDINGS = (".tar.gz", ".tgz", text_archive.ENDING)  # of recordings that are one file
PIECE = 1 << 16
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,120}")


class RecordingError(Stop):
    """A recording that cannot be used, and why, in one sentence."""


def read(path: Path) -> dict[str, bytes]:
    """Name -> content of every member; raises RecordingError."""
    try:
        with given.opened(path) as file:
            return _folder(file, path) if isinstance(file, int) else unpacked(file, path)
    except FileNotFoundError:
        raise RecordingError(f"{path}: no such file or folder") from None
    except OSError as error:
        raise RecordingError(f"{path}: {error.strerror or error}") from None


def _folder(folder: int, path: Path) -> dict[str, bytes]:
    content: dict[str, bytes] = {}
    total = 0
    for name in given.names(folder, ENTRY_LIMIT):
        if not NAME.fullmatch(name):
            continue
        file = given.member(name, folder)
        if file is None:
            continue  # a link or a folder: a golden report or a note may lie beside
        with file:
            size = given.size(file)
            total += size
            _bounded(str(path), name, size, total, len(content))
            content[name] = file.read(size)
    return content


def unpacked(file: BinaryIO, path: Path) -> dict[str, bytes]:
    """Name -> content of every member of an archive; raises RecordingError or OSError. path: what to call it."""
    if text_archive.is_text(file):
        return _text_members(file, path)
    import gzip
    import tarfile
    import zlib

    try:
        # a stream, so that nothing after a refused member is even decompressed; and a bounded one, because tarfile itself
        # reads extended headers of any size into memory
        with (
            gzip.GzipFile(fileobj=file) as packed,
            tarfile.open(fileobj=_Bounded(packed, str(path)), mode="r|", tarinfo=_headers(path)) as archive,
        ):
            content = _members(archive, path)
            _to_the_end(archive, path)
            return content
    # tarfile takes numbers out of extended headers as they are, hence ValueError and OverflowError, and goes from one of
    # them to the next by calling itself, hence RecursionError
    except (
        *(tarfile.TarError, zlib.error, EOFError, gzip.BadGzipFile),
        *(ValueError, OverflowError, RecursionError),
    ) as error:
        # a link may lead to a file of somebody else, of which not even the first two bytes are told
        raise RecordingError(f"{path}: not a whole .tar.gz ({str(error).partition(' (b')[0]})") from None


def _headers(path: Path) -> type[tarfile.TarInfo]:
    """Headers of members, which refuse to be followed by more extended ones than tar programs write: tarfile would take
    each of them apart with a pattern, record by record, before anybody sees the member."""
    import tarfile

    left = HEADERS_LIMIT

    class Header(tarfile.TarInfo):
        @classmethod
        def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
            nonlocal left
            info = super().frombuf(buf, encoding, errors)
            if info.type not in (tarfile.REGTYPE, tarfile.AREGTYPE, tarfile.DIRTYPE):
                left -= max(info.size, 512)
                if info.size > HEADER_LIMIT or left < 0:
                    raise RecordingError(f"{path}: its extended tar headers are larger than those of a recording")
            return info

    return Header


def _to_the_end(archive: tarfile.TarFile, path: Path) -> None:
    """Reads what follows the last member: the check sum of gzip stands at the very end, and without it any bit may have
    been another. Raises RecordingError for more than the zeros that fill a tar archive up."""
    assert archive.fileobj is not None
    while rest := archive.fileobj.read(PIECE):
        if rest.strip(b"\0"):
            raise RecordingError(f"{path}: not a whole .tar.gz (something else follows its last member)")


def _members(archive: tarfile.TarFile, path: Path) -> dict[str, bytes]:
    content: dict[str, bytes] = {}
    total = 0
    for info in archive:
        name = info.name.removeprefix("./")
        if info.isdir() and "/" not in name and not name.startswith("."):
            continue
        if not info.isfile() or info.issparse():
            raise RecordingError(f"{path}: member {info.name!r} is not a plain file")
        if not NAME.fullmatch(name):
            raise RecordingError(f"{path}: member name {info.name!r} is not allowed in a recording")
        total += info.size
        _bounded(str(path), name, info.size, total, len(content))
        member = archive.extractfile(info)
        assert member is not None
        content[name] = member.read()
    return content


class _Bounded(io.RawIOBase):
    """A stream that refuses to give more than a recording may hold."""

    def __init__(self, stream: gzip.GzipFile, path: str) -> None:
        self._stream, self._path = stream, path
        self._left = TOTAL_LIMIT + COUNT_LIMIT * 1024 + FILLING

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        self._left -= max(size, 0)
        if self._left < 0:
            raise RecordingError(f"{self._path}: unpacks to more than {TOTAL_LIMIT >> 20} MiB")
        return self._stream.read(size)


def _text_members(file: BinaryIO, path: Path) -> dict[str, bytes]:
    content: dict[str, bytearray] = {}
    total = 0
    try:
        for name, part in text_archive.read(file):
            if part is None:
                if name in content or not NAME.fullmatch(name):
                    raise RecordingError(f"{path}: member name {name[:200]!r} is not allowed, or is in it twice")
                _bounded(str(path), name, 0, total, len(content))
                content[name] = bytearray()
            else:
                total += len(part)
                _bounded(str(path), name, len(content[name]) + len(part), total, 0)
                content[name] += part
    except text_archive.TextArchiveError as error:
        raise RecordingError(f"{path}: not a whole recording ({error})") from None
    return {name: bytes(data) for name, data in content.items()}


def _bounded(path: str, name: str, size: int, total: int, count: int) -> None:
    if size > MEMBER_LIMIT or total > TOTAL_LIMIT or count >= COUNT_LIMIT:
        raise RecordingError(
            f"{path}: too large at member {name!r} (at most {COUNT_LIMIT} members, {MEMBER_LIMIT >> 20} MiB each, "
            f"{TOTAL_LIMIT >> 20} MiB together)"
        )
