"""The plain files of a .tar.gz, block by block, as zaudit and the usual tar programs write them. Its content is hostile: every
number is bounded before anything is read by it, and what a recording has no use for is refused in one sentence.

Not by tarfile, which reads extended headers of any size and takes them apart record by record before it shows a member. Of
extended headers only the name and the size count. (POSIX.1-2017, pax; GNU tar manual, Basic Tar Format; RFC 1952)
"""

from __future__ import annotations

import io
import re
import zlib
from collections.abc import Iterator
from typing import Any, BinaryIO, NamedTuple

BLOCK = 512
PIECE = 1 << 16
HEADER_LIMIT, HEADERS_LIMIT = 8 << 10, 16 << 20  # bytes of one extended header, and of all: usually a hundred a member
_GZIP = 16 + zlib.MAX_WBITS
_NUMBER = re.compile(rb" *+([0-7]*+)[ \0]*+")
_DIGITS = 20  # of a length in a pax header
_FILE, _FOLDER, _NEXT, _ALL, _LONG_NAME, _LONG_LINK = (b"0", b"\0"), b"5", b"x", b"g", b"L", b"K"
_OTHERS = {
    b"1": "a hard link",
    b"2": "a symbolic link",
    b"3": "a character device",
    b"4": "a block device",
    b"6": "a FIFO",
    b"S": "a sparse file",
}


class TarError(Exception):
    """What is wrong with an archive, in one sentence without its name."""


def damaged(how: str) -> TarError:
    """An archive that is none, or no longer whole."""
    return TarError(f"not a whole .tar.gz ({how})")


class Header(NamedTuple):
    """Of a plain file."""

    name: str
    size: int


class Archive:
    """``for header in archive``: its plain files; :meth:`content` is that of the last one. Raises TarError or OSError.

    limit: bytes that it may unpack to. Whoever has come to the end knows that all check sums were right.
    """

    def __init__(self, file: BinaryIO, limit: int) -> None:
        self._stream = io.BufferedReader(_Unpacked(file, limit), PIECE)
        self._left = 0  # bytes of the member that are still to be read, with what fills up its last block
        self._size = 0
        self._headers = 0  # bytes of extended headers

    def content(self) -> bytes:
        """Of the file whose header came last; once."""
        data = self._exactly(self._size)
        self._left -= self._size
        return data

    def __iter__(self) -> Iterator[Header]:
        named: dict[str, Any] = {}  # what extended headers say of the next member
        while True:
            while self._left:
                self._left -= len(self._exactly(min(self._left, PIECE)))
            block = self._exactly(BLOCK)
            if not block.strip(b"\0"):
                break
            kind, size = block[156:157], _number(block[124:136])
            _check(block)
            if kind in (_NEXT, _ALL, _LONG_NAME, _LONG_LINK):
                self._extended(kind, size, named)
                continue
            header = Header(named.get("name") or _name(block), named.get("size", size))
            named.clear()
            if kind == _FOLDER or (kind in _FILE and header.name.endswith("/")):
                if header.size:
                    raise damaged("a folder in it has a size")
                continue
            if kind not in _FILE:
                what = _OTHERS.get(kind, "of an unknown kind")
                raise TarError(f"member {header.name[:200]!r} is {what}, not a plain file")
            self._size, self._left = header.size, -(-header.size // BLOCK) * BLOCK
            yield header
        while rest := self._stream.read(PIECE):
            if rest.strip(b"\0"):
                raise damaged("something else follows its last member")

    def _extended(self, kind: bytes, size: int, named: dict[str, Any]) -> None:
        """What an extended header says of the next member; none may speak of all that follow."""
        self._headers += size
        if size > HEADER_LIMIT or self._headers > HEADERS_LIMIT:
            raise TarError("its extended tar headers are larger than those of a recording")
        data = self._exactly(-(-size // BLOCK) * BLOCK)[:size]
        if kind == _LONG_LINK:
            return
        said = {"name": _text(data)} if kind == _LONG_NAME else _records(data)
        if said and kind == _ALL:
            raise damaged("one header names several members")
        if said.keys() & named.keys():
            raise damaged("two headers name one member")
        named.update(said)

    def _exactly(self, size: int) -> bytes:
        data = self._stream.read(size)
        if len(data) < size:
            raise damaged("its end is missing")
        return data


class _Unpacked(io.RawIOBase):
    """What a .gz holds: one gzip member, and nothing behind it."""

    def __init__(self, file: BinaryIO, limit: int) -> None:
        self._file, self._zlib = file, zlib.decompressobj(_GZIP)
        self._limit, self._out, self._in = limit, limit, limit

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = b""
        while not data and not self._zlib.eof:
            packed = self._zlib.unconsumed_tail
            if not packed:
                packed = self._file.read(PIECE)
                self._in -= len(packed)
            try:
                data = self._zlib.decompress(packed, min(len(buffer), PIECE))
            except zlib.error:
                raise damaged("not a gzip file, or its data are damaged") from None
            if not data and not packed:
                raise damaged("its end is missing")
            self._out -= len(data)
            if self._out < 0 or self._in < 0:
                raise TarError(f"unpacks to more than a recording may hold ({self._limit >> 20} MiB)")
        if not data and (self._zlib.unused_data or self._file.read(1)):
            raise damaged("something else follows its gzip data")
        buffer[: len(data)] = data
        return len(data)


def _check(block: bytes) -> None:
    """Its check sum is that of all its bytes, with blanks for the sum itself."""
    if sum(block) - sum(block[148:156]) + 8 * ord(" ") != _number(block[148:156]):
        raise damaged("not a tar archive, or a header in it is damaged")


def _number(field: bytes) -> int:
    """Octal, or as GNU tar writes a large one."""
    if field[:1] == b"\x80":
        return int.from_bytes(field[1:], "big")
    found = _NUMBER.fullmatch(field)
    if not found:
        raise damaged("not a tar archive, or a header in it is damaged")
    return int(found[1] or b"0", 8)


def _name(block: bytes) -> str:
    """Of ustar, a long name is in two parts; GNU tar keeps other things in the place of the first."""
    before = _text(block[345:500]) if block[257:263] == b"ustar\0" else ""
    name = _text(block[:100])
    return f"{before}/{name}" if before else name


def _text(field: bytes) -> str:
    return field.partition(b"\0")[0].decode("utf-8", "surrogateescape")


def _records(data: bytes) -> dict[str, Any]:
    """What a pax header says of a name and a size: records "LENGTH KEY=VALUE\\n"."""
    said: dict[str, Any] = {}
    at = 0
    while at < len(data):
        blank = data.find(b" ", at, at + _DIGITS)
        length = data[at:blank] if blank > at else b""
        end = at + int(length) if length.isdigit() else 0
        if not blank < end <= len(data) or data[end - 1 : end] != b"\n":
            raise damaged("an extended header in it is damaged")
        key, _, value = data[blank + 1 : end - 1].partition(b"=")
        if key.startswith(b"GNU.sparse."):
            raise TarError("a member is a sparse file, not a plain file (pack it without --sparse)")
        if key == b"path":
            said["name"] = _text(value)
        elif key == b"size":
            if not value.isdigit() or len(value) > _DIGITS:
                raise damaged("an extended header in it is damaged")
            said["size"] = int(value)
        at = end
    return said
