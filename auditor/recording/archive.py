"""The members of a recording, from a folder or a .tar.gz. Its content is hostile: nothing is extracted to disk, names may not
climb, sizes are bounded, and whatever is wrong is a :class:`RecordingError` in one sentence.

The limits are those of writing as well (``recording.write``): what was written can be read back.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import BinaryIO

from auditor.errors import Stop
from auditor.host import input_file
from auditor.recording import tar

TOTAL_LIMIT = 256 << 20  # bytes of all members
MEMBER_LIMIT = 128 << 20
COUNT_LIMIT = 100_000  # members; some 30 a disk
ENTRY_LIMIT = 2 * COUNT_LIMIT  # of a folder: notes and reports may lie beside
FILLING = 1 << 20  # with which a tar archive ends: 10 KiB of ours
# of an archive: a member has a header, an extended one of two blocks where another program wrote it, and part of a last block
STREAM_LIMIT = TOTAL_LIMIT + 4 * tar.BLOCK * COUNT_LIMIT + FILLING
MANIFEST, TRIAL = "recording.json", "trial.json"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,120}")


class RecordingError(Stop):
    """A recording that cannot be used, and why, in one sentence."""


def read(path: Path) -> dict[str, bytes]:
    """Name -> content of every member; raises RecordingError."""
    try:
        with input_file.open_input(path) as file:
            return _folder(file, path) if isinstance(file, int) else unpacked(file, path)
    except FileNotFoundError:
        raise RecordingError(f"{path}: no such file or folder") from None
    except OSError as error:
        raise RecordingError(f"{path}: {error.strerror or error}") from None


def _folder(folder: int, path: Path) -> dict[str, bytes]:
    content: dict[str, bytes] = {}
    total = 0
    for name in input_file.names(folder, ENTRY_LIMIT):
        if not NAME.fullmatch(name):
            continue
        file = input_file.open_member(name, folder)
        if file is None:
            continue  # a link or a folder: a golden report or a note may lie beside
        with file:
            size = input_file.size(file)
            total += size
            _bounded(str(path), name, size, total, len(content))
            content[name] = file.read(size)
    return content


def unpacked(file: BinaryIO, path: Path) -> dict[str, bytes]:
    """Name -> content of every member of a .tar.gz; raises RecordingError or OSError. path: what to call it."""
    try:
        return _members(tar.Archive(file, STREAM_LIMIT), path)
    except tar.TarError as error:
        raise RecordingError(f"{path}: {error}") from None


def _members(archive: tar.Archive, path: Path) -> dict[str, bytes]:
    """Those of one folder, whatever it is called; names that begin with a dot are skipped, as in a folder (macOS adds some)."""
    content: dict[str, bytes] = {}
    folders = set[str]()
    total = 0
    for number, header in enumerate(archive, 1):
        folder, _, name = header.name.rpartition("/")
        total += header.size
        _bounded(str(path), name, header.size, total, len(content))
        if number > ENTRY_LIMIT:
            raise RecordingError(f"{path}: more than {ENTRY_LIMIT} members")
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


def _bounded(path: str, name: str, size: int, total: int, count: int) -> None:
    if size > MEMBER_LIMIT or total > TOTAL_LIMIT or count >= COUNT_LIMIT:
        raise RecordingError(
            f"{path}: too large at member {name[:200]!r} (at most {COUNT_LIMIT} members, {MEMBER_LIMIT >> 20} MiB each, "
            f"{TOTAL_LIMIT >> 20} MiB together)"
        )
