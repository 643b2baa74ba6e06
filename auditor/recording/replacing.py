"""Where a recording may be written, and putting it there whole: what was there stays until the new one is complete.

Only a recording is ever replaced, and of its folder only what its manifest names. Everything goes through descriptors of
folders (:mod:`auditor.host.user_files`): who may write the folder cannot decide where a name leads.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from auditor import interrupt
from auditor.host import user_files
from auditor.host.trust import held, inside
from auditor.recording import archive
from auditor.recording.archive import MANIFEST, MEMBER_LIMIT, NAME, TRIAL, RecordingError
from auditor.text import crowded


def is_archive(path: Path) -> bool:
    """Whether a recording of this name is one file."""
    return path.name.endswith(archive.ENDINGS)


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
                    user_files.arrived(path, folder, new)
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
    user_files.owned(path, found, folder)
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
        return archive.unpacked(file, path)[MANIFEST] if user_files.size(file) else b""


def _manifest_of_folder(path: Path, folder: int) -> bytes:
    """Empty where the folder is. Raises OSError or ValueError."""
    within = inside(path.name, folder)
    try:
        if not user_files.names(within, 1):
            return b""
        file = user_files.open_member(MANIFEST, within)
        if file is None:
            raise ValueError("no plain file")
        with file:
            return file.read(MEMBER_LIMIT)  # of a larger one the end is missing
    finally:
        os.close(within)


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
    """The members of a folder into another, in place of these old ones; without a manifest meanwhile, so that a mixture of
    both is no recording."""
    within = inside(path.name, folder)
    try:
        there = set(user_files.names(within, archive.ENTRY_LIMIT))
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
    finally:
        os.close(within)
