"""Files that the user names: read without opening what is no file, and written whole or not at all."""

from __future__ import annotations

import errno
import fcntl
import os
import re
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import BinaryIO

from auditor import EXIT_BROKE, Stop, interrupt
from auditor.host import trust
from auditor.host.children.reader import Closing
from auditor.host.trust import NoPlace, held, inside, make_folder

# Files and folders that a user names, to be read: nothing is opened before it was judged, waited for, or read without
# bound.
#
# A name leads to a descriptor that opens nothing (O_PATH), and into no file system of another user
# (:func:`auditor.host.trust.reach`). The descriptor shows what it is, and the same file is then opened through it, never by
# its name again. So no device node, FIFO or socket is opened, whatever is put under the name meanwhile: opening a tape
# rewinds it, opening a watchdog starts it. (man 2 open, man 5 proc_pid_fd)

NULL = os.makedev(1, 3)  # /dev/null (Documentation/admin-guide/devices.txt of the kernel)
FILE, FOLDER, BLOCK_DEVICE = stat.S_IFREG, stat.S_IFDIR, stat.S_IFBLK
_WHAT = {FILE: "a regular file", FOLDER: "a folder", BLOCK_DEVICE: "a block device"}
_HOW = os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


class WrongKind(OSError):
    """What lies under a name is of another kind, and was not opened."""


def open_as(name: str | Path, *kinds: int, folder: int | None = None, flags: int = os.O_RDONLY) -> int:
    """A descriptor of what a name leads to, where it is one of these kinds. folder: in which a name is looked up, without
    following a link. Raises WrongKind or OSError."""
    with Closing(trust.reach(name, folder)) as node:
        return _open_node(node, str(name), *kinds, flags=flags)


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
        with Closing(descriptor):
            yield descriptor
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
    with Closing(node):
        return stat.S_ISDIR(os.fstat(node).st_mode)


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
    """The whole of a plain file; nothing of /dev/null. limit: bytes. trusted: only root and this user can have put it
    there, or can change it: for what is read without being named. Raises OSError with the name and what is wrong."""
    with Closing(trust.locate(str(path))[0] if trusted else trust.reach(path)) as node:
        found = os.fstat(node)
        if stat.S_ISCHR(found.st_mode) and found.st_rdev == NULL:
            return b""
        file = os.fdopen(_open_node(node, str(path), FILE), "rb")
    with file:
        data = file.read(limit + 1)
    if len(data) > limit:
        most = f"{limit >> 20} MiB" if limit >> 20 else f"{limit >> 10} KiB"
        raise OSError(errno.EFBIG, f"more than {most}", str(path))
    return data


def list_trusted(place: Path, ending: str, most: int) -> list[Path]:
    """The files of a folder that is read without being named, by name; none where it is missing. Raises OSError where
    others than root and this user could have put something there, and for more than most files."""
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


# Files that zaudit writes: whole or not at all; the old one stays until the new one is complete.
#
# Root writes into folders that others own, /home and /tmp among them. That is safe by construction and needs no trusted
# owner: the folder is held by a descriptor (:mod:`auditor.host.trust`), a new file of an unguessable name is made in it
# (O_EXCL, mode 0600, whatever the umask), written, synced and renamed there. Only a name in that folder is ever replaced,
# never the content of a file; its owner could do that himself. Under the name there must be nothing, or a plain file of
# root, of this user or of the owner of the folder: a link, a FIFO, a device or the file of a third is refused.
#
# A run that SIGKILL ends leaves ``.NAME.zaudit-XXXXXXXXXXXXXXXX``: it is locked (man 2 flock) while it is written, and the
# next run that writes NAME there removes what is unlocked. (An O_TMPFILE would leave nothing, but linkat(2) cannot replace
# a name.)

SWEPT = 10_000  # entries of a folder that are looked at for what dead runs left
_STREAM = re.compile(r"/(?:dev|proc/self)/fd/([0-9]{1,4})")
_STREAMS = {"-": 1, "/dev/stdout": 1, "/dev/stderr": 2}
_KINDS = {stat.S_IFLNK: "link", stat.S_IFIFO: "FIFO", stat.S_IFDIR: "folder", stat.S_IFSOCK: "socket"}
_OF_THE_NAME = frozenset(  # of the command line, and not of the host
    (errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EACCES, errno.EPERM, errno.ELOOP, errno.ENAMETOOLONG, errno.EROFS)
)
Content = bytes | Callable[[BinaryIO], None]


class CannotWrite(Stop):
    """What went wrong on this host with writing, in one sentence that has the name; the command line may stay as it is."""

    exit_code = EXIT_BROKE


def replace(path: Path, content: Content, mode: int = 0o600) -> None:
    """Write a file, or replace the old one. content: all of it, or what writes it. mode: who may read it. /dev/null takes
    everything; what is open already (``-``, /dev/stdout, /dev/stderr, /dev/fd/N) is written to as it is. Raises NoPlace or
    CannotWrite; BrokenPipeError where the stream has no reader."""
    if (number := stream(path)) is not None:
        with complaining(path), os.fdopen(os.dup(number), "wb") as file:
            _fill(file, content)
        return
    with complaining(path), held(os.path.dirname(path) or ".") as folder:
        if (old := existing(path, folder)) and stat.S_ISCHR(old.st_mode):
            return
        with complaining(path, old), scratch(path.name, folder, create) as (new, descriptor):
            with os.fdopen(os.dup(descriptor), "wb") as file:
                _fill(file, content)
            os.fchmod(descriptor, mode)
            os.fsync(descriptor)
            with interrupt.deferred:
                os.replace(new, path.name, src_dir_fd=folder, dst_dir_fd=folder)
            check_arrival(path, folder, descriptor)
        sync(folder)


def possible(path: Path) -> None:
    """Whether a file can be written there, before the work is done that it is for. Raises NoPlace or CannotWrite."""
    with complaining(path), held(os.path.dirname(path) or ".") as folder:
        existing(path, folder)
        with scratch(path.name, folder, create):
            pass


def existing(path: Path, folder: int) -> os.stat_result | None:
    """What a file would replace: a plain file, /dev/null, or nothing. Raises NoPlace for all else."""
    if path.name in ("", ".."):
        raise NoPlace(f"{path} is a folder: zaudit writes plain files only")
    try:
        found = os.stat(path.name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(found.st_mode) and (not stat.S_ISCHR(found.st_mode) or found.st_rdev != NULL):
        kind = _KINDS.get(stat.S_IFMT(found.st_mode), "device")
        raise NoPlace(f"{path} is a {kind}: zaudit writes plain files only")
    check_owner(path, found, folder)
    return found


def check_owner(path: Path, found: os.stat_result, folder: int) -> None:
    """Raises NoPlace where what is there belongs neither to us nor to the owner of the folder."""
    if stat.S_ISREG(found.st_mode) and found.st_uid not in (0, os.geteuid(), os.fstat(folder).st_uid):
        raise NoPlace(f"{path} belongs to another user than its folder; zaudit does not replace it")


def check_arrival(path: Path, folder: int, descriptor: int) -> None:
    """Raises CannotWrite where what was renamed is not what was written: who may write the folder may exchange names there."""
    if not os.path.samestat(os.fstat(descriptor), os.stat(path.name, dir_fd=folder, follow_symlinks=False)):
        raise CannotWrite(f"{path}: another process replaced it while it was written")


@contextmanager
def complaining(path: Path, old: object = None) -> Iterator[None]:
    """What goes wrong in the block becomes one sentence. old: what was there and is there still."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        kept = "; the old one is unchanged" if old else ""
        kind = NoPlace if error.errno in _OF_THE_NAME else CannotWrite
        raise kind(f"{path}: {error.strerror or error}{kept}") from None


@contextmanager
def scratch(name: str, folder: int, make: Callable[[str, int], int]) -> Iterator[tuple[str, int]]:
    """(name, descriptor) of something new next to ``name``, which is removed at the end, unless it was renamed. make:
    :func:`create` or :func:`create_folder`. Raises OSError."""
    start = f".{name[:50]}.zaudit-"  # at most 200 bytes of the name: a name has 255
    _sweep(start, folder)
    new, made = start + os.urandom(8).hex(), list[int]()
    try:
        with interrupt.deferred:
            made.append(make(new, folder))
        _locked(made[0])
        yield new, made[0]
    finally:
        try:
            with interrupt.deferred:
                _discard(new, folder, made)
        except (KeyboardInterrupt, SystemExit):  # of a signal just before: from now on all are ignored
            _discard(new, folder, made)
            raise


def _discard(name: str, folder: int, made: list[int]) -> None:
    """Remove what was made under this name, and close it. made: its descriptor; empty afterwards."""
    while made:
        _remove(name, folder, made[0])
        os.close(made.pop())


def create(name: str, folder: int) -> int:
    """A new file in a folder, for its owner alone, to write into."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(name, flags, 0o600, dir_fd=folder)
    os.fchmod(descriptor, 0o600)  # whatever the umask took away
    return descriptor


def create_folder(name: str, folder: int) -> int:
    """A new folder in a folder, for its owner alone."""
    make_folder(name, folder)
    return inside(name, folder)


def sync(folder: int) -> None:
    """The names in a folder, on stable storage; some file systems (of FUSE) have no such call."""
    try:
        os.fsync(folder)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP):
            raise


def stream(path: Path) -> int | None:
    """The number of the open descriptor that a name means; None for the name of a file."""
    found = _STREAM.fullmatch(str(path))
    return int(found[1]) if found else _STREAMS.get(str(path))


def _fill(file: BinaryIO, content: Content) -> None:
    if callable(content):
        content(file)
    else:
        file.write(content)


def _locked(descriptor: int) -> bool:
    """Whether we have it alone. On a file system without locks nobody has."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _sweep(start: str, folder: int) -> None:
    """Remove what killed runs left; only where no one else could have given something of ours such a name, which many may
    in a folder like /tmp."""
    left = re.compile(re.escape(start) + "[0-9a-f]{16}")
    with os.scandir(folder) as entries:
        names = [each.name for each in islice(entries, SWEPT) if left.fullmatch(each.name)]
    for name in names:
        with suppress(OSError):
            found = os.stat(name, dir_fd=folder, follow_symlinks=False)
            if found.st_uid != os.geteuid():
                continue
            with Closing(open_as(name, FILE, FOLDER, folder=folder)) as descriptor:
                if not trust.doubt(folder, trust.by(folder), descriptor, name) and _locked(descriptor):
                    _remove(name, folder, descriptor)


def _remove(name: str, folder: int, descriptor: int) -> None:
    """A file, or a folder with the plain files in it; nothing where another name was given to it, or its name to another.
    What cannot be removed is left."""
    with suppress(OSError):
        mine, named = os.fstat(descriptor), os.stat(name, dir_fd=folder, follow_symlinks=False)
        if not os.path.samestat(mine, named):
            return
        if not stat.S_ISDIR(mine.st_mode):
            os.unlink(name, dir_fd=folder)
            return
        for each in os.listdir(descriptor):
            os.unlink(each, dir_fd=descriptor)
        os.rmdir(name, dir_fd=folder)
