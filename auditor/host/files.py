"""Reading the files that a collector asks for: patterns are expanded as glob.glob does it, sizes are bounded, and of what may
hold passwords only a part is kept (``telling``)."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from fnmatch import fnmatchcase
from functools import cache

from auditor.host.request import Files
from auditor.host.telling import CONFIGURATION, PROCESS_ROOT, told

FILE_LIMIT = 4 << 20


def read_files(patterns: tuple[str, ...]) -> Files:
    """Expand the patterns and read what they name; symbolic links are noted, and followed only to regular files."""
    text: dict[str, str] = {}
    links: dict[str, str] = {}
    errors: dict[str, str] = {}
    names = cache(_names)  # many patterns go through the same folders
    for pattern in patterns:
        several, there = "*" in pattern, False
        for path in _expand(pattern, names) if several else [pattern]:
            try:
                mode = os.lstat(path).st_mode
            except (OSError, ValueError) as error:
                if not several or not isinstance(error, FileNotFoundError | NotADirectoryError):
                    there, errors[path] = True, _said(error)
                continue
            there = True
            try:
                if stat.S_ISLNK(mode):
                    links[path] = os.readlink(path)
                kept = _told(path, mode)
            except (OSError, ValueError) as error:
                errors[path] = _said(error)
                continue
            if kept is not None:
                text[path] = kept
        if several and not there:
            errors[pattern] = _why_none(pattern)
    return Files(text, links, errors)


def _told(path: str, mode: int) -> str | None:
    """What is told of a regular file or of one that a link leads to; None for all else. Raises OSError."""
    if not stat.S_ISREG(mode) and not (stat.S_ISLNK(mode) and os.path.isfile(path)):
        return None
    # below the root directory of a process (containers have their own) only files of these names are read, whoever may
    # write the folders that they lie in; of everything else there only links are noted
    if (root := PROCESS_ROOT.match(path)) and not CONFIGURATION.fullmatch(path.rpartition("/")[2]):
        return None
    data = _content(path, guarded=bool(root))
    if len(data) > FILE_LIMIT:
        raise OSError(errno.EFBIG, f"more than {FILE_LIMIT >> 20} MiB")
    return told(path, data.decode("utf-8", "surrogateescape"))


def _said(error: OSError | ValueError) -> str:
    """ValueError is Python's for a NUL byte or a lone surrogate in a path."""
    if isinstance(error, ValueError):
        return "no file can have this name"
    text = error.strerror or "unreadable"
    return text if error.errno == errno.EFBIG else text.lower()


def _expand(pattern: str, names: Callable[[str], list[str]]) -> list[str]:
    """The paths that match, sorted; as glob.glob does it, but with each folder listed once for all patterns, and a path
    whose last part is no pattern may turn out not to exist."""
    *folders, last = pattern.split("/")
    paths = [""]
    for part in folders[1:]:
        paths = _within(paths, part, names)
    return sorted(_within(paths, last, names))


def _within(folders: list[str], part: str, names: Callable[[str], list[str]]) -> list[str]:
    if "*" not in part:
        return [f"{folder}/{part}" for folder in folders]
    return [f"{folder}/{name}" for folder in folders for name in names(folder) if fnmatchcase(name, part)]


def _names(folder: str) -> list[str]:
    """What is in a folder, without what is hidden; nothing where it cannot be listed."""
    try:
        return [name for name in os.listdir(folder) if not name.startswith(".")]
    except (OSError, ValueError):
        return []


def _why_none(pattern: str) -> str:
    """Why a pattern matches nothing: glob does not tell a folder that it may not list from an empty one."""
    try:
        os.scandir(pattern[: pattern.index("*")].rpartition("/")[0]).close()
    except (FileNotFoundError, NotADirectoryError):
        return "no such file"
    except (OSError, ValueError) as error:
        return _said(error)
    return "no such file"


def _content(path: str, *, guarded: bool = False) -> bytes:
    """A whole file, a byte more than the limit at most; in small pieces, because a sysctl refuses a large buffer.

    guarded: of a folder that others may write. Opening never waits (a FIFO), and nothing is told that the owner of the
    folder could not read himself: what a symbolic link there leads to must be his, or readable by all.
    """
    file = os.open(path, os.O_RDONLY | (os.O_NONBLOCK if guarded else 0))
    try:
        if guarded:
            found = os.fstat(file)
            if not stat.S_ISREG(found.st_mode):
                raise OSError(errno.EINVAL, "not a regular file")
            if not found.st_mode & stat.S_IROTH and found.st_uid != os.stat(os.path.dirname(path)).st_uid:
                raise OSError(errno.EACCES, "belongs to another user than its folder, and is not readable by all")
        chunks, size = [], 0
        while size <= FILE_LIMIT and (chunk := os.read(file, 1 << 16)):
            chunks.append(chunk)
            size += len(chunk)
    finally:
        os.close(file)
    return b"".join(chunks)
