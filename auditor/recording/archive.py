"""A recording as one file, a .tar.gz or one text file that diff and grep show as it is, or a folder."""

from __future__ import annotations

import io
import json
import os
import re
import stat
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from auditor import Stop, interrupt
from auditor.host import user_files
from auditor.host.children.reader import Closing
from auditor.host.trust import held, inside
from auditor.text import crowded

# The plain files of a .tar.gz, block by block, as zaudit and the usual tar programs write them. Its content is hostile:
# every number is bounded before anything is read by it, and what a recording does not need is refused in one sentence.
# tarfile would read extended headers of any size, record by record, before it shows a member. Of extended headers only the
# name and the size count. (POSIX.1-2017, pax; GNU tar manual, Basic Tar Format; RFC 1952)

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


def damage(how: str) -> TarError:
    """An archive that is none, or no longer whole."""
    return TarError(f"not a whole .tar.gz ({how})")


class Header(NamedTuple):
    """Of a plain file."""

    name: str
    size: int


class Archive:
    """``for header in archive``: its plain files; :meth:`content` is that of the last one. limit: bytes that it may unpack
    to. headers: at most, of folders and extended ones too. At the end all check sums were right. Raises TarError or
    OSError."""

    def __init__(self, file: BinaryIO, limit: int, headers: int) -> None:
        self._most = self._more = headers
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
            self._more -= 1
            if self._more < 0:
                raise TarError(f"more than {self._most} members, folders and extended headers")
            kind, size = block[156:157], _number(block[124:136])
            # its check sum is that of all its bytes, with blanks for the sum itself
            if sum(block) - sum(block[148:156]) + 8 * ord(" ") != _number(block[148:156]):
                raise damage("not a tar archive, or a header in it is damaged")
            if kind in (_NEXT, _ALL, _LONG_NAME, _LONG_LINK):
                self._extended(kind, size, named)
                continue
            header = Header(named.get("name") or _name(block), named.get("size", size))
            named.clear()
            if kind == _FOLDER or (kind in _FILE and header.name.endswith("/")):
                if header.size:
                    raise damage("a folder in it has a size")
                continue
            if kind not in _FILE:
                what = _OTHERS.get(kind, "of an unknown kind")
                raise TarError(f"member {header.name[:200]!r} is {what}, not a plain file")
            self._size, self._left = header.size, -(-header.size // BLOCK) * BLOCK
            yield header
        while rest := self._stream.read(PIECE):
            if rest.strip(b"\0"):
                raise damage("something else follows its last member")

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
            raise damage("one header names several members")
        if said.keys() & named.keys():
            raise damage("two headers name one member")
        named.update(said)

    def _exactly(self, size: int) -> bytes:
        data = self._stream.read(size)
        if len(data) < size:
            raise damage("its end is missing")
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
                raise damage("not a gzip file, or its data are damaged") from None
            if not data and not packed:
                raise damage("its end is missing")
            self._out -= len(data)
            if self._out < 0 or self._in < 0:
                raise TarError(f"unpacks to more than a recording may hold ({self._limit >> 20} MiB)")
        if not data and (self._zlib.unused_data or self._file.read(1)):
            raise damage("something else follows its gzip data")
        buffer[: len(data)] = data
        return len(data)


def _number(field: bytes) -> int:
    """Octal, or as GNU tar writes a large one."""
    if field[:1] == b"\x80":
        return int.from_bytes(field[1:], "big")
    found = _NUMBER.fullmatch(field)
    if not found:
        raise damage("not a tar archive, or a header in it is damaged")
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
            raise damage("an extended header in it is damaged")
        key, _, value = data[blank + 1 : end - 1].partition(b"=")
        if key.startswith(b"GNU.sparse."):
            raise TarError("a member is a sparse file, not a plain file (pack it without --sparse)")
        if key == b"path":
            said["name"] = _text(value)
        elif key == b"size":
            if not value.isdigit() or len(value) > _DIGITS:
                raise damage("an extended header in it is damaged")
            said["size"] = int(value)
        at = end
    return said


# A recording as one text file, which diff, grep and git show as it is: a head, and the name and the lines of each member.
#
# ::
#
# zaudit-archive/1 == zfs_version-4f1c2a90.out zfs-2.3.9-1 one blank, and a line that is clean UTF-8 text \a \x1b[1mline any
# other, escaped \a line without a newline at its end\
#
# The manifest is the last member, so an archive that is cut off is never taken for a whole one. Its content is as hostile as
# that of a ``.tar.gz``, and the same limits hold (:mod:`auditor.recording.archive`).

ENDING = ".zaudit"
HEAD = b"zaudit-archive/1\n"
_MEMBER, _RAW, _ESCAPED, _GOES_ON = b"== ", b" ", b"\\", b"\\\n"
_PART = 1 << 20  # bytes of a longer line that are written on one
LONGEST = 4 * _PART + len(_ESCAPED + _GOES_ON)
_PARTS = re.compile(rb"[^\n]{0,%d}\n|[^\n]{1,%d}" % (_PART, _PART))
# control characters but the tab, and what breaks a line or turns its direction
_UNCLEAN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
_TO_ESCAPE = re.compile(rb"[^\t -~]|\\")
_ESCAPES = {bytes((each,)): b"\\x%02x" % each for each in range(256)} | {b"\\": b"\\\\"}
_ESCAPE = re.compile(rb"\\(?:\\|x([0-9a-f]{2}))")
_ALL_ESCAPED = re.compile(rb"(?:[^\\]|\\\\|\\x[0-9a-f]{2})*")


class TextArchiveError(ValueError):
    """What is wrong with a text archive."""


def is_text(file: BinaryIO) -> bool:
    """Whether it is a text archive, by its first bytes. Reading goes on from its start."""
    head = file.read(len(HEAD))
    file.seek(0)
    return head == HEAD


def write_text(members: Iterable[tuple[str, bytes]], file: BinaryIO) -> None:
    """The same bytes for the same members."""
    file.write(HEAD)
    for name, data in members:
        file.write(_MEMBER + name.encode("ascii") + b"\n")
        for found in _PARTS.finditer(data):
            line = found[0]
            if _clean(line):
                file.write(_RAW + line)
            else:
                text = _TO_ESCAPE.sub(lambda found: _ESCAPES[found[0]], line.removesuffix(b"\n"))
                file.write(_ESCAPED + text + (b"\n" if line.endswith(b"\n") else _GOES_ON))


def _clean(line: bytes) -> bool:
    try:
        return line.endswith(b"\n") and not _UNCLEAN.search(line.decode())
    except UnicodeDecodeError:
        return False


def read_text(file: BinaryIO) -> Iterator[tuple[str, bytes | None]]:
    """The name of each member and None, and then its name and each part of its content. Raises TextArchiveError or OSError."""
    name = ""
    file.readline(len(HEAD))
    for number, line in enumerate(iter(lambda: file.readline(LONGEST), b""), 2):
        if not line.endswith(b"\n"):
            raise TextArchiveError(f"cut off in line {number}, or that line is longer than zaudit writes it")
        if line.startswith(_MEMBER):
            name = line[len(_MEMBER) : -1].decode("utf-8", "replace")
            yield name, None
        elif name and (part := _content(line)) is not None:
            yield name, part
        else:
            raise TextArchiveError(f"line {number} is not one of a text archive")


def _content(line: bytes) -> bytes | None:
    """What a line is of its member; None for one that is never written, as where line ends were converted."""
    if line.startswith(_ESCAPED):
        text = line[len(_ESCAPED) : -1]
        goes_on = (len(text) - len(text.rstrip(b"\\"))) % 2
        text = text[:-1] if goes_on else text
        whole = _ALL_ESCAPED.fullmatch(text) is not None
        return (
            _ESCAPE.sub(lambda found: bytes((int(found[1], 16),)) if found[1] else b"\\", text)
            + (b"" if goes_on else b"\n")
            if whole
            else None
        )
    if line.startswith(_RAW) and not line.endswith(b"\r\n"):
        return line[len(_RAW) :]
    return line if line == b"\n" else None  # an editor has stripped its blank


# The members of a recording, from a folder or an archive. Its content is hostile: nothing is extracted to disk, names may
# not climb, sizes are bounded, and whatever is wrong is a :class:`RecordingError` in one sentence. Writing has the same
# limits (``recording.write``): what was written can be read back.

TOTAL_LIMIT = 256 << 20  # bytes of all members
MEMBER_LIMIT = 128 << 20
COUNT_LIMIT = 100_000  # members; some 30 a disk
# of a folder: notes and reports may lie beside; of an archive with its folders and extended headers, four a member on macOS
ENTRY_LIMIT = 4 * COUNT_LIMIT + 1000
FILLING = 1 << 20  # with which a tar archive ends: 10 KiB of ours
# of an archive: a member has a header, an extended one of two blocks where another program wrote it, and part of a last block
STREAM_LIMIT = TOTAL_LIMIT + 4 * BLOCK * COUNT_LIMIT + FILLING
MANIFEST, TRIAL = "recording.json", "trial.json"
ENDINGS = (".tar.gz", ".tgz", ENDING)  # of recordings that are one file
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,120}")


class RecordingError(Stop):
    """A recording that cannot be used, and why, in one sentence."""


def read(path: Path) -> dict[str, bytes]:
    """Name -> content of every member; raises RecordingError."""
    try:
        with user_files.open_input(path) as file:
            return _folder(file, path) if isinstance(file, int) else unpacked(file, path)
    except FileNotFoundError:
        raise RecordingError(f"{path}: no such file or folder") from None
    except OSError as error:
        raise RecordingError(f"{path}: {error.strerror or error}") from None


def _folder(folder: int, path: Path) -> dict[str, bytes]:
    content: dict[str, bytes] = {}
    total = 0
    for name in user_files.names(folder, ENTRY_LIMIT):
        if not NAME.fullmatch(name):
            continue
        file = user_files.open_member(name, folder)
        if file is None:
            continue  # a link or a folder: a golden report or a note may lie next to
        with file:
            size = user_files.size(file)
            total += size
            _bounded(str(path), name, size, total, len(content))
            content[name] = file.read(size)
    return content


def unpacked(file: BinaryIO, path: Path) -> dict[str, bytes]:
    """Name -> content of every member of an archive; raises RecordingError or OSError. path: what to call it."""
    if is_text(file):
        return _text_members(file, path)
    try:
        return _members(Archive(file, STREAM_LIMIT, ENTRY_LIMIT), path)
    except TarError as error:
        raise RecordingError(f"{path}: {error}") from None


def _members(archive: Archive, path: Path) -> dict[str, bytes]:
    """Those of one folder, whatever it is called; names that begin with a dot are skipped, as in a folder (macOS adds some)."""
    content: dict[str, bytes] = {}
    folders = set[str]()
    total = 0
    for number, header in enumerate(archive, 1):
        folder, _, name = header.name.rpartition("/")
        total += header.size
        _bounded(str(path), name, header.size, total, len(content))
        if name.startswith("."):
            continue
        folders.add(folder.removeprefix("./") if folder != "." else "")
        if not NAME.fullmatch(name) or header.name.startswith("/") or ".." in folder.split("/"):
            raise RecordingError(f"{path}: not a recording: member {number} has a name that none in a recording has")
        if len(folders) > 1:
            raise RecordingError(f"{path}: not a recording: from member {number} on its members are in another folder")
        if name in content:
            raise RecordingError(f"{path}: member {name!r} is in it twice")
        content[name] = archive.content()
    return content


def _text_members(file: BinaryIO, path: Path) -> dict[str, bytes]:
    content: dict[str, bytearray] = {}
    total = 0
    try:
        for name, part in read_text(file):
            if part is None:
                if name in content or not NAME.fullmatch(name):
                    raise RecordingError(f"{path}: member name {name[:200]!r} is not allowed, or is in it twice")
                _bounded(str(path), name, 0, total, len(content))
                content[name] = bytearray()
            else:
                total += len(part)
                _bounded(str(path), name, len(content[name]) + len(part), total, 0)
                content[name] += part
    except TextArchiveError as error:
        raise RecordingError(f"{path}: not a whole recording ({error})") from None
    return {name: bytes(data) for name, data in content.items()}


def _bounded(path: str, name: str, size: int, total: int, count: int) -> None:
    if size > MEMBER_LIMIT or total > TOTAL_LIMIT or count >= COUNT_LIMIT:
        raise RecordingError(
            f"{path}: too large at member {name[:200]!r} (at most {COUNT_LIMIT} members, {MEMBER_LIMIT >> 20} MiB each, "
            f"{TOTAL_LIMIT >> 20} MiB together)"
        )


# Where a recording may be written: whole, and the old one stays until then. Only a recording is ever replaced, and of its
# folder only what its manifest names, through descriptors of folders: no one can decide where a name leads.


def is_archive(path: Path) -> bool:
    """Whether a recording of this name is one file."""
    return path.name.endswith(ENDINGS)


def possible(path: Path) -> None:
    """Whether a recording can be written there, before it is taken. Raises RecordingError, NoPlace or CannotWrite."""
    path = _named(path)
    place = path.parent
    while not is_archive(path) and not place.exists():  # folders on the way to a folder are made
        place = place.parent
    with user_files.complaining(path), held(str(place)) as folder:
        if place == path.parent:
            _old(path, folder)
        with user_files.scratch(path.name, folder, user_files.create_folder):
            pass


def put_archive(path: Path, write: Callable[[BinaryIO], None]) -> None:
    """A recording that is one file. Raises as :func:`possible`."""
    with user_files.complaining(path), held(str(path.parent)) as folder:
        _old(path, folder)
    user_files.replace(path, write)


def put_folder(path: Path, members: Iterable[tuple[str, bytes]]) -> None:
    """A recording that is a folder, with these members (name, content). Raises as :func:`possible`."""
    path = _named(path)
    with user_files.complaining(path), held(str(path.parent), make=True) as folder:
        old = _old(path, folder)
        with (
            user_files.complaining(path, old),
            user_files.scratch(path.name, folder, user_files.create_folder) as (scratch, new),
        ):
            names = [_member(name, data, new) for name, data in members]
            user_files.sync(new)
            with interrupt.deferred:
                if _folder_is_there(path, folder):
                    _move(new, names, path, folder, old)
                else:
                    os.rename(scratch, path.name, src_dir_fd=folder, dst_dir_fd=folder)
                    user_files.check_arrival(path, folder, new)
        user_files.sync(folder)


def _named(path: Path) -> Path:
    """``.`` and ``..`` by their names."""
    if str(path) == "-":
        raise RecordingError("a recording is written to a folder, a .tar.gz or a .zaudit, not to standard output")
    return path if path.name not in ("", "..") else Path(os.path.abspath(path))


def _member(name: str, data: bytes, folder: int) -> str:
    with os.fdopen(user_files.create(name, folder), "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    return name


def _folder_is_there(path: Path, folder: int) -> bool:
    try:
        return stat.S_ISDIR(os.stat(path.name, dir_fd=folder, follow_symlinks=False).st_mode)
    except FileNotFoundError:
        return False


def _old(path: Path, folder: int) -> set[str]:
    """The names of the members of the recording that is there; none where nothing is. Raises RecordingError or NoPlace."""
    try:
        found = os.stat(path.name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return set()
    refusal = RecordingError(f"{path} exists and is not a recording; zaudit does not overwrite it")
    if not (stat.S_ISREG if is_archive(path) else stat.S_ISDIR)(found.st_mode):
        raise refusal
    user_files.check_owner(path, found, folder)
    try:
        manifest = _manifest_of_archive(path, folder) if is_archive(path) else _manifest_of_folder(path, folder)
        return set(_members_of(manifest)) if manifest else set()
    except (OSError, RecordingError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise refusal from None


def _manifest_of_archive(path: Path, folder: int) -> bytes:
    """Empty where the file is. Raises OSError, RecordingError or KeyError."""
    file = user_files.open_member(path.name, folder)
    if file is None:
        raise ValueError("no plain file")
    with file:
        return unpacked(file, path)[MANIFEST] if user_files.size(file) else b""


def _manifest_of_folder(path: Path, folder: int) -> bytes:
    """Empty where the folder is. Raises OSError or ValueError."""
    with Closing(inside(path.name, folder)) as within:
        if not user_files.names(within, 1):
            return b""
        file = user_files.open_member(MANIFEST, within)
        if file is None:
            raise ValueError("no plain file")
        with file:
            return file.read(MEMBER_LIMIT)  # of a larger one the end is missing


def _members_of(manifest: bytes) -> Iterator[str]:
    """The members that a manifest names. Raises ValueError, KeyError, TypeError, AttributeError or RecursionError."""
    if crowded(text := manifest.decode("utf-8", "surrogatepass")):
        raise ValueError("more values than a manifest has")
    found = json.loads(text)
    if not found["schema"].startswith("zaudit-recording/"):
        raise ValueError("another schema")
    yield from (MANIFEST, TRIAL)
    for capture in found["captures"]:
        yield from (capture[part] for part in ("stdout", "stderr", "files") if NAME.fullmatch(capture.get(part, "")))


def _move(new: int, names: list[str], path: Path, folder: int, old: set[str]) -> None:
    """The members of a folder into another, in place of the old ones; without a manifest meanwhile."""
    with Closing(inside(path.name, folder)) as within:
        there = set(user_files.names(within, ENTRY_LIMIT))
        if foreign := sorted(there.intersection(names) - old):
            raise RecordingError(
                f"{path / foreign[0]} does not belong to the recording there; zaudit does not overwrite it"
            )
        for name in (MANIFEST, *sorted(old - {MANIFEST})):
            if name in there and not stat.S_ISDIR(os.stat(name, dir_fd=within, follow_symlinks=False).st_mode):
                os.unlink(name, dir_fd=within)
        for name in (*(each for each in names if each != MANIFEST), MANIFEST):
            os.replace(name, name, src_dir_fd=new, dst_dir_fd=within)
        user_files.sync(within)
