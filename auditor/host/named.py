"""Files that the caller names, policies and rules: judged after they are opened, and never read beyond a bound.

No device node, FIFO or socket is opened, whatever stands at the name or is put there meanwhile: the name leads to a
descriptor that opens nothing (O_PATH), what it is is asked of that descriptor, and what is read is that same file.
(man 2 open, man 5 proc_pid_fd)
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

from auditor.host import folder

NULL = os.makedev(1, 3)  # /dev/null (Documentation/admin-guide/devices.txt of the kernel)
OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def read(path: Path, limit: int, *, trusted: bool = False) -> bytes:
    """The whole of a regular file; nothing of /dev/null. Raises OSError with the name and what is wrong.

    limit: bytes. trusted: it must belong to root or the caller, and nobody else may write it or the folder that it is in:
    for what is read without being named.
    """
    held = os.open(folder.steady(os.path.abspath(path)) if trusted else path, os.O_PATH | os.O_CLOEXEC)
    try:
        found = os.fstat(held)
        if stat.S_ISCHR(found.st_mode) and found.st_rdev == NULL:
            return b""
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EINVAL, "not a regular file", str(path))
        for each in (found, os.stat(path.parent)) if trusted else ():
            _must_be_ours(each, path)
        try:
            opened = os.open(f"/proc/self/fd/{held}", os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except OSError as error:
            why = "cannot be opened without /proc" if error.errno == errno.ENOENT else error.strerror
            raise OSError(errno.EACCES, why, str(path)) from None
        with open(opened, "rb") as file:
            data = file.read(limit + 1)
    finally:
        os.close(held)
    if len(data) > limit:
        raise OSError(errno.EFBIG, f"more than {limit >> 10} KiB", str(path))
    return data


def listed(place: Path, ending: str, most: int) -> list[Path]:
    """The files of a folder that is read without being named, by name; none where it is not there. Raises OSError where others
    than root and the caller could have put something there, or took it from where it is, and for more than most files."""
    try:
        for each in (place, place.parent):
            _must_be_ours(os.stat(each), place)
        names = sorted(name for name in os.listdir(place) if name.endswith(ending) and not name.startswith("."))
    except (FileNotFoundError, NotADirectoryError):
        return []
    if len(names) > most:
        raise OSError(errno.EFBIG, f"more than {most} files", str(place))
    return [place / name for name in names]


def _must_be_ours(found: os.stat_result, path: Path) -> None:
    what = "its folder" if stat.S_ISDIR(found.st_mode) else "it"
    if found.st_uid not in (0, os.geteuid()):
        raise OSError(errno.EPERM, f"{what} belongs to uid {found.st_uid}", str(path))
    if found.st_mode & OTHERS_WRITE:
        raise OSError(errno.EPERM, f"{what} can be written by others than its owner", str(path))
