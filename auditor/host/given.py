"""Files and folders that the command line names, to be read: judged after they are opened, and never waited for."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import BinaryIO

_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC  # a FIFO that nobody writes to would keep us for good


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO | int]:
    """A plain file, or the descriptor of a folder. Raises OSError, also for what is neither."""
    descriptor = os.open(path, _FLAGS)
    if stat.S_ISDIR(os.fstat(descriptor).st_mode):
        try:
            yield descriptor
        finally:
            os.close(descriptor)
    else:
        with _plain(descriptor) as file:
            yield file


def names(folder: int, limit: int) -> list[str]:
    """What is in a folder, sorted; not more than so many."""
    with os.scandir(folder) as entries:
        return sorted(each.name for each in islice(entries, limit))


def member(name: str, folder: int) -> BinaryIO | None:
    """A plain file in a folder, None for anything else there; a link is not followed. Raises OSError."""
    try:
        return _plain(os.open(name, _FLAGS | os.O_NOFOLLOW, dir_fd=folder))
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EINVAL, errno.ENXIO):  # a link; as _plain says; a socket
            return None
        raise


def size(file: BinaryIO) -> int:
    """In bytes, as it is now."""
    return os.fstat(file.fileno()).st_size


def private(file: BinaryIO) -> bool:
    """Nobody but root and this user may read or write it, as it is now."""
    found = os.fstat(file.fileno())
    return not found.st_mode & 0o077 and found.st_uid in (0, os.geteuid())


def content(path: Path, limit: int) -> bytes:
    """A whole plain file. Raises OSError, also where it is larger than that or no plain file."""
    with opened(path) as file:
        if isinstance(file, int):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if size(file) > limit:
            raise OSError(errno.EFBIG, f"more than {limit >> 20} MiB", str(path))
        return file.read(size(file))


def _plain(descriptor: int) -> BinaryIO:
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "neither a plain file nor a folder")
    return os.fdopen(descriptor, "rb")
