"""Files by pattern, each judged after it was opened. Runs inside zaudit for the files of the machine, and in a separate
process for those of others (``children.others``): it imports only what every Python has at once.

A name is opened with O_PATH, which opens no device, waits for no FIFO and needs no right to the file; its descriptor shows
what it is; only a regular file is then opened for reading, through that descriptor and never by its name again. (man 2
open, O_PATH; man 5 proc_pid_fd)"""

from __future__ import annotations

import errno
import os
import stat

TYPE_CHECKING = False  # typing would take a quarter of the time in which the other process starts
if TYPE_CHECKING:
    from collections.abc import Callable

    Look = tuple[int, int, int, int]  # mode, device that it lies on, device that it is, inode number

MIB = 1 << 20
SIZES = 100  # of blocks: ZFS has powers of two up to 16 MiB
CHUNK = 1 << 16  # a sysctl refuses a large buffer
NONE = b"no such file"
NOWHERE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)  # where a link may lead
TEXT, LINK, ERROR, OTHER = "text", "link", "error", "other"
DEVICE, CHANGED, BLOCKS = "device", "changed", "blocks"
BARRED = " may not write"  # after the device of a folder
# of an open file: how it is open, what it is, the device that it is or lies on; of a file also its file system (man 5
# proc_pid_mountinfo, field 9) or UNMOUNTED
WRITES, READS, BLOCK, FILE, NEITHER, GENERIC = "w", "r", "block", "file", "neither", "generic"
SCSI_GENERIC = 21  # Linux include/uapi/linux/major.h SCSI_GENERIC_MAJOR
UNMOUNTED = "-"
TRIES = 3
REFUSED, END = "refused", "end"  # of the other process: why nothing is read, and that all was said
DONE = "done"  # that all was said of a path; of none: that it begins


class Closing:
    """A descriptor that is closed at the end of a block."""

    def __init__(self, file: int) -> None:
        self._file = file

    def __enter__(self) -> int:
        return self._file

    def __exit__(self, *_: object) -> None:
        os.close(self._file)


class Reader:
    """Reads what patterns name, within limits for all of them together.

    opened: opens a path with these flags besides O_PATH. said: takes what came of a path: its text, the target of a link,
    an error, OTHER for what is neither a regular file, a folder nor a link, or, of a folder, the DEVICE that it is on.
    over: the words where all files together exceed total_bytes. follow: whether to follow a link at this path. fit: raises
    OSError for a descriptor of a regular file that is not to be read. hidden: ``*`` also stands for a dot at the beginning
    of a name. since: say of each file, folder and link how long after this moment (in ns since the epoch) it last changed.
    writes: say of each folder with its device whether this process may not write there; gives the error of access(2) for a
    name below a folder, or 0. look: say of each link in /proc/PID/fd that names a path what is open, and how; it asks
    nobody who serves the file."""

    def __init__(
        self,
        opened: Callable[[str, int], int],
        said: Callable[[str, str, bytes], None],
        *,
        file_bytes: int,
        total_bytes: int,
        files: int,
        entries: int,
        over: str,
        follow: Callable[[str], bool] = lambda path: True,
        fit: Callable[[int], None] = lambda file: None,
        hidden: bool = False,
        since: int | None = None,
        writes: Callable[[int, str], int] | None = None,
        look: Callable[[int], Look] | None = None,
    ) -> None:
        self._opened, self._said, self._follow, self._fit = opened, said, follow, fit
        self._hidden, self._since, self._writes = hidden, since, writes
        self._look = look
        self._tables: dict[str, dict[bytes, bytes]] = {}  # of the process that was asked about last
        self._file_bytes, self._left, self._over = file_bytes, total_bytes, over
        self._files, self._files_left, self._entries = files, files, entries
        # many patterns go through the same ones: what is in them, or why that is not known
        self._folders: dict[str, list[str] | OSError | ValueError] = {}
        self._descriptors = os.open("/proc/self/fd", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)

    def close(self) -> None:
        os.close(self._descriptors)

    def read(self, pattern: str, content: bool) -> None:
        """Say what there is of a pattern (``*``: any part of a name). content: text, else links and devices of folders."""
        several, there = "*" in pattern, False
        try:
            paths, unlisted = self._expand(pattern) if several else ([pattern], {})
        except OSError as error:
            self._error(pattern, error)
            return
        for part, why in unlisted.items():
            there = True
            self._error(part, why)
        for path in paths:
            try:
                file = self._opened(path, os.O_NOFOLLOW)
            except (OSError, ValueError) as error:
                if not several or not isinstance(error, FileNotFoundError | NotADirectoryError):
                    there = True
                    self._error(path, error)
                continue
            there = True
            try:
                self._tell(path, file, content)
            except (OSError, ValueError) as error:
                self._error(path, error)
            finally:
                os.close(file)
        if several and content and self._since is not None:
            self._tell_folder(pattern[: pattern.index("*")].rpartition("/")[0])
        if several and not there:
            self._said(ERROR, pattern, NONE)

    def blocks(self, pattern: str) -> None:
        """The sizes of blocks (st_blksize) of the regular files that a pattern names, and how many files of each; 0 stands
        for files of one block at most. Names and content stay private."""
        found: dict[int, int] = {}
        try:
            paths, unlisted = self._expand(pattern)
            for path in paths:
                if (size := self._block(path)) is not None:
                    found[size] = found.get(size, 0) + 1
            if len(found) > SIZES:
                raise OSError(errno.EFBIG, f"more than {SIZES} sizes of blocks")
            for why in unlisted.values():
                raise why
        except (OSError, ValueError) as error:
            self._error(pattern, error)
            return
        if found:
            self._said(BLOCKS, pattern, "".join(f"{size} {found[size]}\n" for size in sorted(found)).encode())
        else:
            self._said(ERROR, pattern, NONE)

    def _block(self, path: str) -> int | None:
        """The size of a file's blocks, 0 where it has one at most; None for no file. Raises OSError for a link."""
        try:
            file = self._opened(path, os.O_NOFOLLOW)
        except (FileNotFoundError, NotADirectoryError):
            return None
        with Closing(file):
            status = os.fstat(file)
        if stat.S_ISLNK(status.st_mode):
            raise OSError(errno.ELOOP, "one of them is a symbolic link")
        if not stat.S_ISREG(status.st_mode):
            return None
        return status.st_blksize if status.st_size > status.st_blksize else 0

    def _tell(self, path: str, file: int, content: bool) -> None:
        found = os.fstat(file)
        if content:
            self._tell_changed(path, found)
        if not stat.S_ISLNK(found.st_mode):
            self._tell_file(path, file, found.st_mode, content)
            return
        target = os.fsencode(os.readlink("", dir_fd=file))
        self._said(LINK, path, target)
        if self._look and target.startswith(b"/") and "/fd/" in path:
            self._said(DEVICE, path, self._open_on(path, self._look).encode())
        if not self._follow(path):
            return
        try:
            file = self._opened(path, 0)
        except OSError as error:
            if content and error.errno in NOWHERE:
                return
            raise  # it must not look like a link to a folder of which nothing is wrong
        with Closing(file):
            found = os.fstat(file)
            self._tell_changed(path, found)
            self._tell_file(path, file, found.st_mode, content)

    def _open_on(self, path: str, look: Callable[[int], Look]) -> str:
        """What lies behind a descriptor of a process, not its name: that belongs to its own mounts, which any user can
        make. The process can exchange it at any moment, so how it is open and what it is must be of the same: on the same
        mount, and a device node of the same number. Neither can become another while held here. (man 5
        proc_pid_fdinfo; ino since Linux 5.14)"""
        for _ in range(TRIES):
            with Closing(self._opened(path, 0)) as file:
                said = self._info(self._opened(path.replace("/fd/", "/fdinfo/"), os.O_NOFOLLOW))
                mine = self._info(os.open(f"/proc/self/fdinfo/{file}", os.O_PATH | os.O_CLOEXEC))
                if said["mnt_id"] != mine["mnt_id"]:
                    continue
                flags = int(said["flags"], 8)
                if flags & os.O_PATH:
                    return NEITHER
                kind = self._kind(path, said["mnt_id"])
                if kind == "fuse" or kind.startswith(
                    "fuse."
                ):  # who serves it is not asked, and what is written there is his
                    return NEITHER
                mode, on, number, ino = look(file)
            device, writes = stat.S_ISBLK(mode), flags & os.O_ACCMODE != os.O_RDONLY
            if device and "ino" not in said and writes:
                raise OSError(errno.ENOTSUP, "what it may do with a device is not told before Linux 5.14")
            if device and said.get("ino", str(ino)) != str(ino):
                continue
            if not device and not stat.S_ISREG(mode):
                generic = stat.S_ISCHR(mode) and os.major(number) == SCSI_GENERIC
                return GENERIC if generic else NEITHER
            at = number if device else on
            place = f"{os.major(at)}:{os.minor(at)}"
            return f"{WRITES if writes else READS} {f'{BLOCK} {place}' if device else f'{FILE} {place} {kind}'}"
        raise OSError(errno.EAGAIN, "another one was opened while it was looked at")

    def _kind(self, path: str, mount: str) -> str:
        """The type of the file system of a mount of this process, by its table of mounts; UNMOUNTED where it is not there:
        the kernel's own, another process's, or gone."""
        table = path[: path.index("/fd/")] + "/mountinfo"
        if table not in self._tables:
            text = self._small(self._opened(table, os.O_NOFOLLOW), self._file_bytes)
            parts = (line.split(b" ") for line in text.split(b"\n"))
            self._tables = {table: {each[0]: each[each.index(b"-") + 1] for each in parts if b"-" in each[:-1]}}
        kind = self._tables[table].get(mount.encode(), b"").decode("ascii", "replace")
        return kind if kind.replace(".", "").replace("_", "").replace("-", "").isalnum() else UNMOUNTED

    def _info(self, file: int) -> dict[str, str]:
        """The lines of a file of fdinfo by their names; closes it. Raises OSError, too, where they are not there."""
        text = self._small(file, CHUNK).decode("ascii", "replace")
        found = {name: value.strip() for name, _, value in (line.partition(":") for line in text.split("\n"))}
        if not found.get("flags", "").isdigit() or "mnt_id" not in found:
            raise OSError(errno.EINVAL, "what it is open for is not said")
        return found

    def _small(self, file: int, most: int) -> bytes:
        """What is in a file of /proc, which is closed then. Raises OSError where it is longer."""
        with Closing(file):
            data = self._bytes(file, most)
        if len(data) > most:
            raise OSError(errno.EFBIG, f"more than {most // 1024} KiB")
        return data

    def _tell_folder(self, path: str) -> None:
        """A folder changes when a file is added to it or taken away. Of one that is not there nothing is said."""
        try:
            folder = self._opened(path or "/", os.O_DIRECTORY)
        except (OSError, ValueError):
            return
        with Closing(folder):
            self._tell_changed(path, os.fstat(folder))

    def _tell_changed(self, path: str, found: os.stat_result) -> None:
        """The ctime: who owns a file can set its mtime to whatever he likes, and this not."""
        if self._since is not None:
            self._said(CHANGED, path, b"%.3f" % ((found.st_ctime_ns - self._since) / 1e9))

    def _tell_file(self, path: str, file: int, mode: int, content: bool) -> None:
        if stat.S_ISDIR(mode):
            if not content:
                device = os.fstat(file).st_dev
                said = f"{os.major(device)}:{os.minor(device)}{BARRED if self._may_not_write(file) else ''}"
                self._said(DEVICE, path, said.encode())
        elif content:
            self._said(*((TEXT, path, self._content(file)) if stat.S_ISREG(mode) else (OTHER, path, b"")))

    def _may_not_write(self, folder: int) -> bool:
        """Because of its identity, and not because nobody may. Anybody can mount a folder read-only in mounts of his own.
        The kernel looks at that last, so EROFS comes only to who may write otherwise; but of a file system that is
        read-only as a whole it comes first, and there the mode decides. (Linux fs/open.c do_faccessat, fs/namei.c
        inode_permission and sb_permission, fs/overlayfs/super.c: an overlay that cannot write is such a file system)"""
        if self._writes is None:
            return False
        why = self._writes(self._descriptors, str(folder))
        return why != 0 and not (why == errno.EROFS and _mode_allows(os.fstat(folder)))

    def _content(self, file: int) -> bytes:
        if not self._files_left:
            raise OSError(errno.EFBIG, f"more than {self._files:,} files")
        self._files_left -= 1
        self._fit(file)
        data = self._bytes(file, min(self._file_bytes, self._left))
        if len(data) > self._file_bytes:
            raise OSError(errno.EFBIG, f"more than {self._file_bytes // MIB} MiB")
        if len(data) > self._left:
            self._left = 0
            raise OSError(errno.EFBIG, self._over)
        self._left -= len(data)
        return data

    def _bytes(self, file: int, most: int) -> bytes:
        """What is in a file; of a longer one a little more than this."""
        flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
        chunks, size = [], 0
        with Closing(os.open(str(file), flags, dir_fd=self._descriptors)) as content:
            while size <= most and (chunk := os.read(content, CHUNK)):
                chunks.append(chunk)
                size += len(chunk)
        return b"".join(chunks)

    def _expand(self, pattern: str) -> tuple[list[str], dict[str, OSError | ValueError]]:
        """(the paths that match, sorted; what of the pattern lies in each folder that could not be listed, and why). Where
        the last part is no pattern, the path may not exist. Raises OSError (EFBIG)."""
        paths = [""]
        unlisted: dict[str, OSError | ValueError] = {}
        parts = pattern.split("/")[1:]
        for at, part in enumerate(parts):
            if "*" not in part:
                paths = [f"{path}/{part}" for path in paths]
                continue
            folders, paths = paths, []
            for folder in folders:
                names = self._names(folder)
                if isinstance(names, list):
                    paths += [f"{folder}/{name}" for name in names if matches(name, part)]
                else:
                    unlisted["/".join((folder, *parts[at:]))] = names
        return sorted(paths), unlisted

    def _names(self, folder: str) -> list[str] | OSError | ValueError:
        """What ``*`` may mean in a folder: nothing where it is none; or why it cannot be listed. Raises OSError (EFBIG)."""
        if folder not in self._folders:
            try:
                self._folders[folder] = self._listed(folder)
            except (FileNotFoundError, NotADirectoryError):
                self._folders[folder] = []
            except (OSError, ValueError) as error:
                if isinstance(error, OSError) and error.errno == errno.EFBIG:
                    raise
                self._folders[folder] = error
        return self._folders[folder]

    def _listed(self, folder: str) -> list[str]:
        names = []
        with Closing(self._opened(folder or "/", os.O_DIRECTORY)) as above:
            listing = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=above)
        with Closing(listing), os.scandir(listing) as entries:
            for entry in entries:
                names.append(entry.name)
                if len(names) > self._entries:
                    raise OSError(errno.EFBIG, f"more than {self._entries:,} entries in a folder")
        return [name for name in names if self._hidden or not name.startswith(".")]

    def _error(self, path: str, error: OSError | ValueError) -> None:
        self._said(ERROR, path, reason(error).encode("utf-8", "surrogateescape"))


def _mode_allows(found: os.stat_result) -> bool:
    """Whether this process may write by the mode of a folder. An access list is not asked: who may by that alone may not."""
    if found.st_uid == os.geteuid():
        return bool(found.st_mode & stat.S_IWUSR)
    if found.st_gid in (os.getegid(), *os.getgroups()):
        return bool(found.st_mode & stat.S_IWGRP)
    return bool(found.st_mode & stat.S_IWOTH)


def reason(error: OSError | ValueError) -> str:
    """Why there is no answer. ValueError is Python's for a NUL byte or a lone surrogate in a path."""
    if isinstance(error, ValueError):
        return "no file can have this name"
    text = error.strerror or "unreadable"
    return text[:1].lower() + text[1:]


def matches(name: str, part: str) -> bool:
    """Whether a name is one of those that a part of a pattern means."""
    first, *middle, last = part.split("*")
    at, end = len(first), len(name) - len(last)
    if at > end or not name.startswith(first) or not name.endswith(last):
        return False
    for piece in middle:
        at = name.find(piece, at, end) + len(piece)
        if at < len(piece):
            return False
    return True
