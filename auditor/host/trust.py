"""Who decides what is under a name: the one judge of "only root and the user of zaudit can have put it there".

All such questions end here: tools and hooks, the policy that is read without a name, what alert reported last, the ledger,
paths that were named to the kernel, and links on the way to a file that zaudit writes.

A path is walked from / downwards. Each part is held by a descriptor that opens nothing (O_PATH), and judged by it:

- Its folder belongs to root or this user, and no one else may write there: only they can put, exchange or remove a name in
  it.
- In a folder with the sticky bit others may write and yet remove nothing. They may put things there, and may have moved
  there a file or link of root's from a folder of their own. A folder of root's they cannot move: that takes the right to
  write it. So there a folder counts and nothing else. (Linux fs/namei.c vfs_rename, __check_sticky)
- A link is followed only where it is theirs as well.

Then no one else can exchange any part later: that takes the right to write one of these folders. So a later open(2) or
execve(2) of the same name finds what was judged, and programs are started by name. (Started by its descriptor a script
would be called /dev/fd/N, and break where it looks next to itself.)

**Others may write** what the mode lets group or others write. To root the group's bits count whatever the group is: group 0
may have members, and with an access list these bits are its mask, the most that anyone on the list has (man 5 acl). An
NFSv4 list does not show in the mode (TrueNAS, NFS), so for root others may write what has one. An ordinary user risks only
his own rights: what his own group may write counts as his, since distributions give each user his own group and umask 0002.

**A file system of FUSE** reports the owner and mode that its process likes, and its user may unmount it. So nothing in one
that another user serves counts, and he is not even asked: he could make the asker wait, where not even SIGKILL ends it.
That holds for whatever a user names too (:func:`reach`), though links and folders of anybody are followed there. mountinfo
names him (user_id). (Linux fs/fuse/dev.c, request_wait_answer; inode.c, fuse_show_options; man 5 proc_pid_mountinfo,
proc_pid_fdinfo)"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from auditor import Stop
from auditor.host.children.reader import Closing

LINKS = 40  # as the kernel has it (MAXSYMLINKS)
NFS4_LISTS = ("system.nfs4_acl", "system.nfs4_acl_xdr")  # of the NFS client; of OpenZFS in TrueNAS
NO_LIST = (errno.ENODATA, errno.EOPNOTSUPP)
MOUNTS = "/proc/self/mountinfo"
_PART = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC


class Exchangeable(OSError):
    """Another user can have put something there, or can change it. strerror: what of the way is his; filename: where."""

    def __init__(self, why: str, path: str) -> None:
        super().__init__(errno.EPERM, f"another user could have put it there: {why}", path)


class Served(Exchangeable):
    """Another user serves its file system."""

    def __init__(self, why: str, path: str) -> None:
        super().__init__(why, path)
        self.strerror = why


def fault(node: int, path: str) -> str:
    """Why what a descriptor holds is not root's or this user's alone to change; empty where it is. path: leads to it."""
    return _served(node, path) or _fault(os.fstat(node), path)


def private(node: int) -> bool:
    """Whether nobody but root and this user may read or write a file."""
    found = os.fstat(node)
    return not (_foreign(found, "") or found.st_mode & 0o077 or _served(node, ""))


def keeps(node: int, path: str) -> bool:
    """Whether a folder of ours in this folder stays what it is."""
    return not _served(node, path) and _keeps(os.fstat(node), path)


def doubt(folder: int, path: str, entry: int, name: str) -> str:
    """Why what lies in a folder may have been put there by others; empty where it was not. path: leads to the folder."""
    served = _served(folder, path) or _served(entry, os.path.join(path, name))
    return served or _doubt(os.fstat(folder), path, os.fstat(entry), name)


def by(descriptor: int) -> str:
    """A path that leads to what a descriptor holds. (man 5 proc_pid_fd)"""
    return f"/proc/self/fd/{descriptor}"


def resolve(path: str) -> str:
    """The path without links, where no one else can have put anything on the way. What it leads to may be anybody's. Raises
    Exchangeable, and OSError for what is not there."""
    node, real = walk(_absolute(path), strict=True)
    os.close(node)
    return real


def locate(path: str) -> tuple[int, str]:
    """(descriptor that opens nothing, path without links) of what only root and this user control. Raises as
    :func:`resolve`."""
    node, real = walk(_absolute(path), strict=True)
    try:
        if why := _fault(os.fstat(node), real):
            raise Exchangeable(why, real)
    except BaseException:
        os.close(node)
        raise
    return node, real


def locate_folder(path: str) -> str:
    """The path without links of a folder in which nobody else can put anything. Raises as :func:`resolve`."""
    node, real = locate(path)
    with Closing(node):
        if not stat.S_ISDIR(os.fstat(node).st_mode):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), real)
    return real


def reach(name: str | os.PathLike[str], folder: int | None = None) -> int:
    """A descriptor that opens nothing of what a user named, whoever put it there. folder: in which a name is looked up,
    without following a link. Raises Served or OSError."""
    if folder is None:
        return walk(os.fspath(name), strict=False, links=False)[0]
    node = os.open(name, _PART, dir_fd=folder)
    try:
        _ask(node, os.fspath(name))
    except BaseException:
        os.close(node)
        raise
    return node


def walk(
    path: str, *, strict: bool, links: bool = True, make: Callable[[str, int], None] | None = None
) -> tuple[int, str]:
    """(descriptor that opens nothing, path without links) of what a path leads to; nothing in a file system of another user
    is asked. strict: no one else can have put any part there, and what lies in a folder of others is not even looked at.
    Otherwise that holds for links, and for the way to them; without links for nothing. make: makes a missing folder. Raises
    Exchangeable or OSError."""
    at, real, why = _start(path)
    rest, followed = deque(path.split("/")), 0
    try:
        mount = _mount(at)
        if real != "/":
            _ask(at, real)
        while rest:
            if (part := rest.popleft()) in ("", "."):
                continue
            if strict and not _keeps(os.fstat(at), real):
                raise Exchangeable(_fault(os.fstat(at), real), os.path.join(real, part))
            next_ = _next(part, at, make)
            try:
                here = os.path.dirname(real) if part == ".." else os.path.join(real, part)
                if (beyond := _mount(next_)) != mount:
                    _ask(next_, here)
                entry = os.fstat(next_)
                why = why or ("" if part == ".." or not links else _doubt(os.fstat(at), real, entry, part))
                if why and (strict or (links and stat.S_ISLNK(entry.st_mode))):
                    raise Exchangeable(why, here)
                if not stat.S_ISLNK(entry.st_mode):
                    at, next_, real, mount = next_, at, here, beyond
                    continue
                if (followed := followed + 1) > LINKS:
                    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
                if (
                    not links and (_file_system(beyond) or ("",))[0] == "proc"
                ):  # it leads to what its text only describes
                    jumped = os.open(part, os.O_PATH | os.O_CLOEXEC, dir_fd=at)
                    os.close(at)
                    at, real, mount = jumped, here, _mount(jumped)
                    if _file_system(
                        mount
                    ):  # a pipe is in none, and what is another namespace's is not to be had this way
                        _ask(at, real)
                    continue
                target = os.readlink("", dir_fd=next_)
            finally:
                os.close(next_)
            rest.extendleft(reversed(target.split("/")))
            if target.startswith("/"):
                os.close(at)
                at, real = os.open("/", _PART), "/"
                mount = _mount(at)
    except BaseException:
        os.close(at)
        raise
    return at, real


def _absolute(path: str) -> str:
    return path if path.startswith("/") else os.path.join(os.getcwd(), path)


def _start(path: str) -> tuple[int, str, str]:
    """(descriptor, path, doubt about the way to it) of where a path begins."""
    if path.startswith("/"):
        return os.open("/", _PART), "/", ""
    real, why = os.getcwd(), ""
    try:
        resolve(real)
    except OSError as error:
        why = str(error.strerror)
    return os.open(".", _PART), real, why


def _next(part: str, at: int, make: Callable[[str, int], None] | None) -> int:
    try:
        return _open_part(part, at)
    except FileNotFoundError:
        if not make:
            raise
        make(part, at)
        return _open_part(part, at)


def _open_part(part: str, at: int) -> int:
    """As a folder first: otherwise an automounter mounts nothing there. (Linux fs/namei.c, follow_automount)"""
    try:
        return os.open(part, _PART | os.O_DIRECTORY, dir_fd=at)
    except NotADirectoryError:
        return os.open(part, _PART, dir_fd=at)


def _mount(node: int) -> str:
    """The number of the mount that a descriptor is in, which is no other's while it is held."""
    with open(f"/proc/self/fdinfo/{node}", encoding="ascii") as file:
        return next(line.split()[1] for line in file if line.startswith("mnt_id:"))


def _ask(node: int, path: str) -> None:
    """Raises Served where that is not to be asked."""
    if why := _served(node, path):
        raise Served(why, path)


def _served(node: int, path: str) -> str:
    """Which other user serves the file system of what a descriptor holds. Does not ask that file system."""
    with Closing(os.open("/", _PART)) as root:
        if (mount := _mount(node)) == _mount(root):
            return ""
    if not (found := _file_system(mount)):  # it was unmounted, or is one of another namespace
        return f"{path} is in no file system that is mounted here"
    kind, options = found
    if kind not in ("fuse", "fuseblk") and not kind.startswith(("fuse.", "fuseblk.")):
        return ""
    user = re.search(r"(?<![^,])user_id=([0-9]+)(?![^,])", options)
    if user and int(user[1]) in (0, os.geteuid()):
        return ""
    return f"{path} is in a file system (FUSE) of uid {user[1] if user else 'unknown'}"


def _file_system(mount: str) -> tuple[str, str] | None:
    """(kind, options) of what is mounted under a number."""
    with open(MOUNTS, encoding="utf-8", errors="surrogateescape") as file:
        line = next((each for each in file if each.partition(" ")[0] == mount), "")
    if not line:
        return None
    kind, _, options = line.rstrip("\n").partition(" - ")[2].split(" ")
    return kind, options


def _fault(found: os.stat_result, path: str) -> str:
    return _foreign(found, path) or _open(found, path)


def _keeps(found: os.stat_result, path: str) -> bool:
    return not (_foreign(found, path) or (_open(found, path) and not found.st_mode & stat.S_ISVTX))


def _doubt(folder: os.stat_result, path: str, entry: os.stat_result, name: str) -> str:
    here = os.path.join(path, name)
    if why := _fault(folder, path):
        return _fault(entry, here) if stat.S_ISDIR(entry.st_mode) and _keeps(folder, path) else why
    return _foreign(entry, here) if stat.S_ISLNK(entry.st_mode) else ""


def _foreign(found: os.stat_result, path: str) -> str:
    return "" if found.st_uid in (0, os.geteuid()) else f"{path} belongs to uid {found.st_uid}"


def _open(found: os.stat_result, path: str) -> str:
    """Why others may write a file or folder. The mode of a link says nothing."""
    if stat.S_ISLNK(found.st_mode):
        return ""
    root = os.geteuid() == 0
    others = stat.S_IWOTH | (stat.S_IWGRP if root or found.st_gid != os.getegid() else 0)
    if found.st_mode & others:
        return f"{path} can be written by others (mode {stat.S_IMODE(found.st_mode):o})"
    return f"{path} has an NFSv4 access list" if root and _has_nfs4_list(path) else ""


def _has_nfs4_list(path: str) -> bool:
    for name in NFS4_LISTS:
        try:
            os.getxattr(path, name)
        except OSError as error:
            if error.errno in NO_LIST:
                continue
        return True
    return False


# The folder that a file is written into, as a descriptor: found part by part, so that no other user decides where it is.
#
# ``openat`` with O_NOFOLLOW for each part of the path (:func:`walk`). A symbolic link on the way is followed only where
# only root and the user of zaudit could have put it or could exchange it; so an owner of a folder on the way chooses among
# his own folders at most, and cannot lead a write of root into /etc. What follows goes through the descriptor: renaming or
# replacing the folder changes nothing. (man 7 path_resolution, man 7 symlink, man 2 open)

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class NoPlace(Stop):
    """Why nothing can be written under this name, in one sentence that has the name: the command line must change."""


@contextmanager
def held(path: str, *, make: bool = False) -> Iterator[int]:
    """A descriptor of the folder within the block. make: missing folders, for their owner alone. Raises NoPlace."""
    try:
        node, _ = walk(path, strict=False, make=make_folder if make else None)
        with Closing(node):
            folder = inside(".", node)
    except Served as error:
        raise NoPlace(f"{path}: {error.strerror}") from None
    except Exchangeable as error:
        link = os.path.basename(error.filename)
        raise NoPlace(
            f"{path}: on the way, {link!r} is a link that another user could exchange; name where it leads"
        ) from None
    except OSError as error:
        raise NoPlace(f"{path}: {error.strerror or error}") from None
    with Closing(folder):
        yield folder


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
