"""The folder that a file is written into, as a descriptor: found part by part, so that no other user decides where it is.

``openat`` with O_NOFOLLOW for each part of the path. A symbolic link on the way is followed only where nobody but root and
the user who runs zaudit could have put it or could exchange it; so an owner of a folder on the way chooses among his own
folders at most, and cannot lead a write of root into /etc. What is done in the folder afterwards goes through the descriptor:
renaming the folder, or putting another in its place, changes nothing. (man 7 path_resolution, man 7 symlink, man 2 open)
"""

from __future__ import annotations

import errno
import os
import stat
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

from auditor.errors import Stop

LINKS = 40  # as the kernel has it (MAXSYMLINKS)
_PART = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class NoPlace(Stop):
    """Why nothing can be written under this name, in one sentence that has the name: the command line must change."""


@contextmanager
def held(path: str, *, make: bool = False) -> Iterator[int]:
    """A descriptor of the folder, for as long as the block runs. make: the folders that are not there, for their owner alone.

    Raises NoPlace.
    """
    try:
        folder = _walked(path, make)
    except OSError as error:
        raise NoPlace(f"{path}: {error.strerror or error}") from None
    try:
        yield folder
    finally:
        os.close(folder)


def inside(name: str, folder: int) -> int:
    """A descriptor of a folder in a folder; never through a link."""
    return os.open(name, _FOLDER, dir_fd=folder)


def make_folder(name: str, folder: int) -> None:
    """A new folder in a folder, for its owner alone, whatever the umask is. (A chmod afterwards would follow a link.)"""
    umask = os.umask(0o077)
    try:
        os.mkdir(name, 0o700, dir_fd=folder)
    finally:
        os.umask(umask)


def _walked(path: str, make: bool) -> int:
    at, links = _start(path), 0
    try:
        parts = deque(path.split("/"))
        while parts:
            if (part := parts.popleft()) in ("", "."):
                continue
            next_ = _next(part, at, make)
            kind = os.fstat(next_).st_mode
            if stat.S_ISLNK(kind):
                target = _target(next_, at, path, part)
                parts.extendleft(reversed(target.split("/")))
                if (links := links + 1) > LINKS:
                    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
                next_ = _start(target) if target.startswith("/") else os.dup(at)
            elif not stat.S_ISDIR(kind):
                os.close(next_)
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
            os.close(at)
            at = next_
        return inside(".", at)
    finally:
        os.close(at)


def _start(path: str) -> int:
    return os.open("/" if path.startswith("/") else ".", _PART | os.O_DIRECTORY)


def _next(part: str, at: int, make: bool) -> int:
    try:
        return os.open(part, _PART, dir_fd=at)
    except FileNotFoundError:
        if not make:
            raise
        make_folder(part, at)
        return os.open(part, _PART, dir_fd=at)


def _target(link: int, at: int, path: str, part: str) -> str:
    """Where a link leads. Closes it. Raises NoPlace where somebody else may have a say in that."""
    try:
        if not trusted(os.fstat(at), os.fstat(link)):
            raise NoPlace(
                f"{path}: on the way, {part!r} is a link that another user could exchange; name where it leads"
            )
        return os.readlink("", dir_fd=link)
    finally:
        os.close(link)


def trusted(folder: os.stat_result, entry: os.stat_result) -> bool:
    """Whether only root and this user decide what is under a name, and it is theirs."""
    return entry.st_uid in (0, os.geteuid()) and _kept(folder, entry)


def _kept(folder: os.stat_result, entry: os.stat_result) -> bool:
    """Whether only root and this user decide what is under a name: the folder in which it lies is theirs, and nobody else may
    write there or, with the sticky bit, exchange what is not his."""
    return _may_be_kept(folder) and (not _others_write(folder) or entry.st_uid in (0, os.geteuid()))


def _may_be_kept(folder: os.stat_result) -> bool:
    """Whether anything is kept so in a folder."""
    sticky = bool(folder.st_mode & stat.S_ISVTX)
    return folder.st_uid in (0, os.geteuid()) and (not _others_write(folder) or sticky)


def _others_write(folder: os.stat_result) -> bool:
    return bool(folder.st_mode & (0o002 | (0 if folder.st_gid in (0, os.getegid()) else 0o020)))


def steady(path: str) -> str:
    """The path without symbolic links, if it still is what it was when it was named: only root and this user could have moved
    anything on the way, or put it there. Raises OSError where others could have, and for what is not there."""
    done, rest, links = "/", [*reversed(path.split("/"))], 0
    while rest:
        part = rest.pop()
        if part in ("", "."):
            continue
        if part == "..":
            done = os.path.dirname(done)
            continue
        at, above = os.path.join(done, part), os.lstat(done)
        # what is in a folder of somebody else is not even looked at: who serves its file system may let the asker wait
        if not _may_be_kept(above) or not _kept(above, found := os.lstat(at)):
            raise OSError(errno.EPERM, "others than root could have put it there", at)
        if not stat.S_ISLNK(found.st_mode):
            done = at
            continue
        if (links := links + 1) > LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
        target = os.readlink(at)
        done = "/" if target.startswith("/") else done
        rest += reversed(target.split("/"))
    return done
