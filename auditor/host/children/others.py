"""The process that reads what belongs to others, with their rights: ``owner`` starts it.

Arguments: ``KIND WHERE SECONDS WORDS LIMIT...``. Standard input: patterns, each ended by a NUL byte and begun with ``+``
where more than links is wanted, with ``=`` for sizes of blocks. Standard output: frames (:func:`frame`), the last one END.
Of KIND memory the patterns have no mark, and DONE follows each.

Everything is imported and opened before it enters another mount namespace: from then on a name means something else. (man 2
setns, openat2, capset, prctl; man 7 capabilities, user_namespaces; man 5 proc_pid_status, proc_pid_auxv, proc_pid_stat; man
3 getauxval; Linux fs/proc/base.c)"""

from __future__ import annotations

import ctypes
import errno
import os
import resource
import sys
import time

from auditor.host.children.reader import DONE, END, REFUSED, Closing, Reader, reason

NOBODY = 65534  # has no file and is in no group
OPENAT2 = 437  # the number of the system call, on every architecture but Alpha
NO_MAGICLINKS, IN_ROOT = 0x02, 0x10
CLONE_NEWNS = 0x20000
AT_PAGESZ, AT_UID, AT_EUID, AT_GID, AT_EGID, AT_SECURE = 6, 11, 12, 13, 14, 23
PAGES = (4096, 8192, 16384, 65536)
PDEATHSIG, DUMPABLE, CAPBSET_DROP, NO_NEW_PRIVS, AMBIENT = 1, 4, 24, 38, 47
# file systems of the kernel, where to read may do something and no configuration lies (linux/magic.h): proc, sysfs, debugfs,
# tracefs, securityfs, cgroup, cgroup2, bpf, configfs, pstore, efivarfs, selinuxfs, smackfs, devpts, nsfs, pidfs, binderfs,
# mqueue, fusectl
KERNEL = frozenset(
    (0x9FA0, 0x62656572, 0x64626720, 0x74726163, 0x73636673, 0x27E0EB, 0x63677270, 0xCAFE4A11, 0x62656570, 0x6165676C,
     0xDE5E81E4, 0xF97CFF8C, 0x43415D53, 0x1CD1, 0x6E736673, 0x50494446, 0x6C6F6F70, 0x19800202, 0x65735543)
)  # fmt: skip
DAC_READ_SEARCH, SYS_PTRACE = 1 << 2, 1 << 19  # to read what only its owner may, and what only a debugger may
EMPTY_PATH, DONT_SYNC, TYPE_AND_INO = 0x1000, 0x4000, 0x101
SAMPLES = 5
TABLE_BYTES = 1 << 16  # of status and auxv: some hundred lines and pairs, or more than anybody honest has

libc = ctypes.CDLL(None, use_errno=True)


class Refused(Exception):
    """Nothing is read; the text says why."""


class Identity:
    """Whose rights to take."""

    def __init__(self, user: int, group: int, groups: list[int]) -> None:
        self.user, self.group, self.groups = user, group, groups


def called(result: int) -> None:
    """Raises OSError where a call of the C library failed."""
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def prctl(*words: int) -> None:
    """man 2 prctl. Raises OSError."""
    called(libc.prctl(*map(ctypes.c_ulong, (*words, 0, 0, 0, 0)[:5])))


def frame(kind: str, path: str, data: bytes) -> None:
    """One answer: ``KIND LENGTH LENGTH``, a new line, the path, the data."""
    name = os.fsencode(path)
    rest = memoryview(f"{kind} {len(name)} {len(data)}\n".encode() + name + data)
    while rest:
        rest = rest[os.write(1, rest) :]


# -- whose rights -------------------------------------------------------------------------------------------------------


def table(process: int, name: str) -> bytes:
    """One of the small files of a process. Raises Refused where there is more than anybody needs."""
    with Closing(os.open(name, os.O_RDONLY | os.O_CLOEXEC, dir_fd=process)) as file:
        data = b""
        while len(data) <= TABLE_BYTES and (more := os.read(file, TABLE_BYTES)):
            data += more
    if len(data) > TABLE_BYTES:
        raise Refused(f"its {name} is longer than zaudit reads")
    return data


def of_process(process: int) -> Identity:
    """Raises Refused for one whose arguments may be those of a user with fewer rights: it is, or was at its start, a
    program with more rights than its starter (sudo, su, newgrp through a link of any name).

    The kernel tells both in two files. A process may become another program between them, and another again: so both are
    read in turn several times, and must not change. The second has other addresses in every program that starts."""
    seen = {(rights(table(process, "status")), table(process, "auxv")) for _ in range(SAMPLES)}
    if len(seen) > 1:
        raise Refused("it became another program while it was looked at")
    (users, groups, more), vector = seen.pop()
    if not vector:
        raise Refused("it has ended")
    if len(set(users)) != 1 or len(set(groups)) != 1:
        raise Refused("it has the rights of more than one user")
    if not as_started(vector, users[0], groups[0]):
        raise Refused("it was started with more rights than its user has")
    return Identity(users[0], groups[0], list(more))


def rights(status: bytes) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """(real, effective, saved and file system uid; the same of its group; its other groups)."""
    lines = dict(line.split(b":", 1) for line in status.split(b"\n") if b":" in line)
    found = [tuple(map(int, lines.get(name, b"").split())) for name in (b"Uid", b"Gid", b"Groups")]
    if len(found[0]) != 4 or len(found[1]) != 4:
        raise Refused("its rights are not understood")
    return found[0], found[1], found[2]


def as_started(vector: bytes, user: int, group: int) -> bool:
    """Whether the starter of a process had its rights, or was root. The kernel sets AT_SECURE for a program that gives
    rights, and SELinux for most services: there it must not have been the file that gave it a user."""
    of = pairs(vector)
    if not of[AT_SECURE]:
        return True
    same = of.get(AT_UID) == of.get(AT_EUID) and of.get(AT_GID) == of.get(AT_EGID)
    return same and (of.get(AT_UID) == 0 or (of.get(AT_UID), of.get(AT_GID)) == (user, group))


def pairs(vector: bytes) -> dict[int, int]:
    """An auxiliary vector, whose words have 8 bytes or, of a program of 32 bits, 4."""
    for size in (8, 4):
        words = [int.from_bytes(vector[i : i + size], sys.byteorder) for i in range(0, len(vector), size)]
        found = dict(zip(words[::2], words[1::2], strict=False))
        if found.get(AT_PAGESZ) in PAGES and AT_SECURE in found:
            return found
    raise Refused("how it was started is not understood")


def started(process: int) -> int:
    """When a process started, in ns since the epoch, by the clock of now."""
    fields = table(process, "stat").rpartition(b") ")[2].split()  # before it the name, which may hold any character
    if len(fields) < 20 or not fields[19].isdigit():
        raise Refused("when it was started is not understood")
    boot = time.time_ns() - time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    return boot + int(fields[19]) * 1_000_000_000 // os.sysconf("SC_CLK_TCK")


def of_folder(path: str) -> Identity:
    """The owner of a folder that root named, and no group: the owner need not be in the folder's group (a folder above may
    have handed its own down). For a folder of root: nobody's identity. Who may write above it could have put another one
    there, and root reads everything."""
    try:
        folder = os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise Refused(f"{path}: {reason(error)}") from None
    user = os.fstat(folder).st_uid
    os.close(folder)
    return Identity(user or NOBODY, NOBODY, [])


# -- taking them ----------------------------------------------------------------------------------------------------------


def limit(seconds: int, memory: int, cpu_s: int, descriptors: int) -> None:
    """Whatever happens to who asked, and whatever a file system does."""
    for what, most in (
        (resource.RLIMIT_AS, memory),
        (resource.RLIMIT_CPU, cpu_s),
        (resource.RLIMIT_NOFILE, descriptors),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
    ):
        _, hard = resource.getrlimit(what)
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(what, (most, most))
    libc.alarm(seconds)


def enter(process: int, root: int) -> None:
    """The mount namespace of a process, and its root directory."""
    mine, its = os.stat("/proc/self/ns/mnt"), os.stat("ns/mnt", dir_fd=process)
    if (mine.st_dev, mine.st_ino) != (its.st_dev, its.st_ino):
        namespace = os.open("ns/mnt", os.O_RDONLY | os.O_CLOEXEC, dir_fd=process)
        called(libc.setns(namespace, CLONE_NEWNS))
        os.close(namespace)
    os.fchdir(root)
    os.chroot(".")
    os.chdir("/")


def take(identity: Identity) -> None:
    """Its user and groups and no capability, for good."""
    os.setgroups(identity.groups)
    for capability in range(64):
        try:
            prctl(CAPBSET_DROP, capability)
        except OSError:
            break  # there are no more; or root has not that right here, and then none of them can come back either
    os.setresgid(identity.group, identity.group, identity.group)
    os.setresuid(identity.user, identity.user, identity.user)


def shut(keep: int = 0) -> None:
    """No capability but those, no more rights by any program, and who has the same user may not look into this process."""
    prctl(AMBIENT, 4)
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)  # _LINUX_CAPABILITY_VERSION_3, this process
    has = (ctypes.c_uint32 * 6)()  # effective, permitted and inheritable, and the upper half of each
    called(libc.capget(header, has))
    called(libc.capset(header, (ctypes.c_uint32 * 6)(has[0] & keep, has[1] & keep)))
    prctl(DUMPABLE, 0)
    prctl(PDEATHSIG, 9)
    prctl(NO_NEW_PRIVS, 1)


# -- reading ------------------------------------------------------------------------------------------------------------


class Below:
    """Opens paths below one root directory. Absolute links and ``..`` lead nowhere else, and those of /proc nowhere."""

    def __init__(self, root: int, who: str) -> None:
        self._root, self._who = root, who

    def __call__(self, path: str, flags: int) -> int:
        how = (ctypes.c_uint64 * 3)(flags | os.O_PATH | os.O_CLOEXEC, 0, NO_MAGICLINKS | IN_ROOT)  # struct open_how
        name = os.fsencode(path)
        if b"\0" in name:
            raise ValueError("NUL")
        for _ in range(100):  # EAGAIN: something was renamed or mounted anywhere while .. was walked
            size = ctypes.c_ulong(ctypes.sizeof(how))
            file: int = libc.syscall(ctypes.c_long(OPENAT2), ctypes.c_long(self._root), name, how, size)
            if file >= 0:
                return file
            if (number := ctypes.get_errno()) != errno.EAGAIN:
                break
        if number == errno.ENOSYS:
            raise OSError(number, "could not be read: this kernel has no openat2 (Linux 5.6)")
        raise OSError(number, os.strerror(number) + (self._who if number in (errno.EACCES, errno.EPERM) else ""))


def barred(folder: int, name: str) -> int:
    """Why this process may not write what has this name below a folder, or 0: Python's os.access() does not tell."""
    return ctypes.get_errno() if libc.faccessat(folder, name.encode(), os.W_OK, 0) < 0 else 0


def ordinary(file: int) -> None:
    """Raises OSError for a file of a file system of the kernel."""
    found = (ctypes.c_long * 64)()  # struct statfs, which begins with the type
    called(libc.fstatfs(file, found))
    if found[0] & 0xFFFFFFFF in KERNEL:
        raise OSError(errno.EINVAL, "lies on a file system of the kernel")


def look(file: int) -> tuple[int, int, int, int]:
    """Mode, the device that it lies on, the one that it is, and inode number, from the kernel's memory: who serves the file
    system (FUSE, or an overlay on it) is not asked, and cannot make this process wait. A C library without statx asks. (man
    2 statx, AT_STATX_DONT_SYNC)"""
    if not hasattr(libc, "statx"):
        found = os.fstat(file)
        return found.st_mode, found.st_dev, found.st_rdev, found.st_ino
    status = (ctypes.c_uint32 * 64)()  # struct statx
    called(libc.statx(file, b"", EMPTY_PATH | DONT_SYNC, TYPE_AND_INO, status))
    number = (
        int(status[8]) | int(status[9]) << 32 if sys.byteorder == "little" else int(status[8]) << 32 | int(status[9])
    )
    mode = ctypes.cast(status, ctypes.POINTER(ctypes.c_uint16))[14]
    return int(mode), os.makedev(status[34], status[35]), os.makedev(status[32], status[33]), number


def main(arguments: list[str], patterns: list[str]) -> None:
    kind, where, seconds, over, *limits = arguments
    memory, cpu_s, descriptors, file_bytes, total_bytes, files, entries = map(int, limits)
    limit(int(seconds), memory, cpu_s, descriptors)
    if kind == "memory":
        of_memory(where, patterns, file_bytes, total_bytes, files, entries, over)
        return
    root = os.open("root" if kind == "process" else "/", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC,
                   dir_fd=int(where) if kind == "process" else None)  # fmt: skip
    identity = None
    if os.geteuid() == 0:
        identity = of_process(int(where)) if kind == "process" else of_folder(where)
    reader = Reader(
        Below(root, f" for user {identity.user}" if identity else ""), frame, file_bytes=file_bytes,
        total_bytes=total_bytes, files=files, entries=entries, over=over, fit=ordinary,
        hidden=True,  # MySQL and MariaDB include .x.cnf like any other
        since=started(int(where)) if kind == "process" else None,
        writes=barred if kind == "process" and identity is not None and identity.user != 0 else None,
    )  # fmt: skip
    sys.path.clear()
    sys.meta_path.clear()
    if kind == "process":
        if identity:
            enter(int(where), root)
        os.close(int(where))
    if identity:
        take(identity)
    shut()
    if any(pattern[:1] == "-" for pattern in patterns):
        reader.read("/", False)  # so that an answer without a device is one of those that had none yet
    for pattern in patterns:
        if pattern[:1] == "=":
            reader.blocks(pattern[1:])
        else:
            reader.read(pattern[1:], pattern[:1] == "+")
    frame(END, "", b"")


def of_memory(
    where: str, patterns: list[str], file_bytes: int, total_bytes: int, files: int, entries: int, over: str
) -> None:
    """Files below /proc. where: a number and a descriptor of its folder there, or nothing. Where a process waits for
    another this one hangs, and holds nothing but that file."""
    number, _, held = where.partition(" ")
    folder = int(held) if held else -1  # of the process of this number

    def opened(path: str, flags: int) -> int:
        """What is asked of one process in a row is of the same: where it ended, its folder leads nowhere."""
        nonlocal number, folder
        flags |= os.O_PATH | os.O_CLOEXEC
        at, _, rest = path[len("/proc/") :].partition("/")
        if at != number or folder < 0:
            if folder >= 0:
                os.close(folder)
            number, folder = "", -1
            folder = os.open(f"/proc/{at}", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
            number = at
        return os.open(rest, flags, dir_fd=folder)

    reader = Reader(
        opened, frame, file_bytes=file_bytes, total_bytes=total_bytes, files=files, entries=entries, over=over,
        follow=lambda path: False, look=look,
    )  # fmt: skip
    shut(DAC_READ_SEARCH | SYS_PTRACE)
    frame(DONE, "", b"")
    for each in patterns:
        reader.read(each, True)
        frame(DONE, each, b"")
    frame(END, "", b"")


def run() -> None:
    """Nothing but frames comes out of it."""
    try:
        with open(0, "rb") as given:
            patterns = [os.fsdecode(each) for each in given.read().split(b"\0")[:-1]]
        main(sys.argv[1:], patterns)
    except Refused as refusal:
        frame(REFUSED, "", os.fsencode(str(refusal)))
    except OSError as error:
        frame(REFUSED, "", os.fsencode(reason(error)))
    except BaseException as error:
        frame(REFUSED, "", f"the reader failed: {type(error).__name__}: {error}".encode("utf-8", "replace"))
    os._exit(0)
