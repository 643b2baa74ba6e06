"""Files and folders that somebody names, to be read: nothing is opened before it was judged, waited for, or read without bound.

A name leads to a descriptor that opens nothing (O_PATH), and into no file system that another user serves
(:func:`auditor.host.trust.reach`); what it is, is asked of that descriptor; and what is opened then is that same file, through
the descriptor and never by its name again. So no device node, FIFO or socket is opened, whatever lies under the name or is put
there meanwhile: opening a tape rewinds it, opening a watchdog starts it. (man 2 open, man 5 proc_pid_fd)
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import BinaryIO

from auditor.host import trust

NULL = os.makedev(1, 3)  # /dev/null (Documentation/admin-guide/devices.txt of the kernel)
FILE, FOLDER, BLOCK_DEVICE = stat.S_IFREG, stat.S_IFDIR, stat.S_IFBLK
_WHAT = {FILE: "a regular file", FOLDER: "a folder", BLOCK_DEVICE: "a block device"}
_HOW = os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


class WrongKind(OSError):
    """What lies under a name is of another kind, and was not opened."""


def open_as(name: str | Path, *kinds: int, folder: int | None = None, flags: int = os.O_RDONLY) -> int:
    """A descriptor of what a name leads to, where it is one of these kinds. Raises WrongKind or OSError.

    folder: in which a name is looked up, where a link is not followed.
    """
    node = trust.reach(name, folder)
    try:
        return _open_node(node, str(name), *kinds, flags=flags)
    finally:
        os.close(node)


def _open_node(node: int, name: str, *kinds: int, flags: int = os.O_RDONLY) -> int:
    if stat.S_IFMT(os.fstat(node).st_mode) not in kinds:
        raise WrongKind(errno.EINVAL, f"not {' or '.join(_WHAT[kind] for kind in kinds)}", name)
    try:
        return os.open(trust.by(node), flags | _HOW)
    except OSError as error:
        why = "cannot be opened without /proc" if error.errno == errno.ENOENT else error.strerror
        raise OSError(error.errno, why, name) from None


@contextmanager
def open_input(path: Path) -> Iterator[BinaryIO | int]:
    """A plain file, or the descriptor of a folder. Raises OSError, also for what is neither."""
    descriptor = open_as(path, FILE, FOLDER)
    if stat.S_ISDIR(os.fstat(descriptor).st_mode):
        try:
            yield descriptor
        finally:
            os.close(descriptor)
    else:
        with os.fdopen(descriptor, "rb") as file:
            yield file


def is_folder(name: str) -> bool:
    """Does a name lead to a folder? Not one of another user's file system. Raises trust.Served."""
    try:
        node = trust.reach(name)
    except trust.Served:
        raise
    except OSError:  # who opens it says so
        return False
    try:
        return stat.S_ISDIR(os.fstat(node).st_mode)
    finally:
        os.close(node)


def open_member(name: str, folder: int) -> BinaryIO | None:
    """A plain file in a folder, None for anything else there; a link is not followed. Raises OSError."""
    try:
        return os.fdopen(open_as(name, FILE, folder=folder), "rb")
    except WrongKind:
        return None


def names(folder: int, limit: int) -> list[str]:
    """What is in a folder, sorted; not more than so many."""
    with os.scandir(folder) as entries:
        return sorted(each.name for each in islice(entries, limit))


def size(file: BinaryIO) -> int:
    """In bytes, as it is now."""
    return os.fstat(file.fileno()).st_size


def private(file: BinaryIO) -> bool:
    """Nobody but root and this user may read or write it, as it is now."""
    return trust.private(file.fileno())


def read(path: Path, limit: int, *, trusted: bool = False) -> bytes:
    """The whole of a plain file; nothing of /dev/null. Raises OSError with the name and what is wrong.

    limit: bytes. trusted: nobody but root and this user can have put it there, or can change it: for what is read without
    being named.
    """
    node = trust.locate(str(path))[0] if trusted else trust.reach(path)
    try:
        found = os.fstat(node)
        if stat.S_ISCHR(found.st_mode) and found.st_rdev == NULL:
            return b""
        file = os.fdopen(_open_node(node, str(path), FILE), "rb")
    finally:
        os.close(node)
    with file:
        data = file.read(limit + 1)
    if len(data) > limit:
        most = f"{limit >> 20} MiB" if limit >> 20 else f"{limit >> 10} KiB"
        raise OSError(errno.EFBIG, f"more than {most}", str(path))
    return data


def list_trusted(place: Path, ending: str, most: int) -> list[Path]:
    """The files of a folder that is read without being named, by name; none where it is not there. Raises OSError where others
    than root and this user could have put something there, and for more than most files."""
    try:
        names = sorted(
            name
            for name in os.listdir(trust.locate_folder(str(place)))
            if name.endswith(ending) and not name.startswith(".")
        )
    except (FileNotFoundError, NotADirectoryError):
        return []
    if len(names) > most:
        raise OSError(errno.EFBIG, f"more than {most} files", str(place))
    return [place / name for name in names]
