"""Where a run writes: a new folder on a dataset, and a partition that the administrator named.

The ledger records the folder first (:mod:`auditor.verify.ledger`), and its owner's rights write it. The partition is opened
once, exclusively; that descriptor answers what it is, and takes all writes."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import mmap
import os
import re
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from auditor import Stop
from auditor.host import user_files
from auditor.host.children.reader import Closing
from auditor.powercut.proof import Drive
from auditor.powercut.sectors import SECTOR, Layout, unit
from auditor.text import harmless
from auditor.verify import ledger, place

LABEL = "zaudit-powercut"
MARGIN = 1 << 20  # bytes at both ends of a partition: what begins or ends there is somebody's
BLKSSZGET = 0x1268  # linux/fs.h: bytes of a logical block
PAGE = 4096
SYS, UDEV = Path("/sys"), Path("/run/udev/data")
_LEAF = re.compile(r"/dev/[\w./:+-]+")


class TargetError(Stop):
    """Why nothing is written there."""


class Unusable(TargetError):
    """It is there, and this process cannot have it: which says nothing of what a cut left."""


class Profile(NamedTuple):
    """How a commit writes and flushes. sectors: of a unit. slots: units of a stream. each: units of one commit. flush:
    fsync, fdatasync, dsync (O_DSYNC), direct (O_DIRECT and fdatasync) or mmap (msync). whole: a unit is promised to be old
    or new as a whole."""

    sectors: int
    slots: int
    each: int
    flush: str
    whole: bool = False


PROFILES = {
    "fsync": Profile(16, 1024, 1, "fsync"),
    "dsync": Profile(16, 1024, 1, "dsync"),
    "direct": Profile(16, 1024, 1, "direct"),
    "mmap": Profile(8, 1024, 1, "mmap"),
    "pages8": Profile(16, 1024, 16, "fsync", whole=True),
    "pages16": Profile(32, 512, 16, "fsync", whole=True),
}
RAW = Profile(8, 1024, 1, "direct")
CONTROL = Profile(8, 4096, 1, "direct")


class Medium:
    """What a stream is written to: an open file or partition."""

    def __init__(self, fd: int, layout: Layout, flush: str) -> None:
        self.fd, self.layout, self._flush = fd, layout, flush
        self._buffer = mmap.mmap(-1, max(layout.unit, PAGE))  # O_DIRECT wants it aligned
        self._map: mmap.mmap | None = None

    def write(self, slot: int, data: bytes) -> None:
        """Complete, and not flushed but with O_DSYNC."""
        offset = self.layout.offset(slot)
        if self._flush == "mmap":
            self._map = self._map or mmap.mmap(self.fd, self.layout.base + self.layout.size)
            self._map[offset : offset + len(data)] = data
            return
        self._buffer[: len(data)] = data
        with memoryview(self._buffer)[: len(data)] as view:
            if os.pwrite(self.fd, view, offset) != len(data):
                raise OSError(errno.EIO, "a write that was not whole")

    def flush(self) -> None:
        """What was written is durable now, as far as the layers below keep their word."""
        if self._flush == "mmap" and self._map:
            self._map.flush()
        elif self._flush in ("direct", "fdatasync"):
            os.fdatasync(self.fd)
        elif self._flush == "fsync":
            os.fsync(self.fd)

    def fill(self) -> None:
        """Generation 0 everywhere, durable: what is not ours afterwards has come later."""
        for slot in range(self.layout.slots):
            self.write(slot, unit(self.layout, slot, 0, 0))
        os.fsync(self.fd)
        if self._map:
            self._map.flush()

    def read(self, slot: int) -> bytes | OSError:
        """The bytes of a slot, or why they cannot be read."""
        try:
            with memoryview(self._buffer)[: self.layout.unit] as view:
                count = os.preadv(self.fd, [view], self.layout.offset(slot))
                return bytes(view[:count])
        except OSError as error:
            return error


# -- a partition --------------------------------------------------------------------------------------------------


class Partition(NamedTuple):
    """What is open. disk: the kernel's name of its drive. block: bytes of a logical block."""

    fd: int
    path: str
    uuid: str
    disk: str
    size: int
    block: int


@contextlib.contextmanager
def partition(path: str, *, write: bool = True) -> Iterator[Partition]:
    """A partition that is labelled for this, open for this process alone. Raises TargetError, and writes nothing."""
    flags = (os.O_RDWR if write else os.O_RDONLY) | os.O_EXCL | os.O_DIRECT
    try:
        fd = user_files.open_as(path, user_files.BLOCK_DEVICE, flags=flags)
    except OSError as error:
        busy = ": it is mounted, in a pool or used otherwise" if error.errno == errno.EBUSY else ""
        kind = Unusable if error.errno in (errno.EBUSY, errno.EACCES, errno.EPERM) else TargetError
        raise kind(f"{harmless(path)}: {error.strerror}{busy}") from None
    with Closing(fd):
        found = _identify(fd, path)
        _refuse_contents(found)
        yield found


def _identify(fd: int, path: str) -> Partition:
    """What the kernel says of what is open, whatever its name leads to by now."""
    number = os.fstat(fd).st_rdev
    here = SYS / "dev" / "block" / f"{os.major(number)}:{os.minor(number)}"
    try:
        words = dict(line.split("=", 1) for line in (here / "uevent").read_text().splitlines() if "=" in line)
        holders = os.listdir(here / "holders")
        is_partition = (here / "partition").exists()
        disk = here.resolve().parent.name
    except OSError as error:
        raise TargetError(f"{harmless(path)}: not visible below /sys ({error.strerror})") from None
    if not is_partition:
        raise TargetError(f"{harmless(path)} is no partition: zaudit writes on no whole drive")
    told = _udev(number)  # a partition that a program added at run time has no label in the kernel
    label = words.get("PARTNAME") or told.get("ID_PART_ENTRY_NAME", "")
    if label != LABEL:
        has = f"is {harmless(label)!r}" if label else "is empty"
        raise TargetError(f"{harmless(path)}: its label {has}, not {LABEL}: sgdisk -c NUMBER:{LABEL} /dev/{disk}")
    if holders:
        raise TargetError(f"{harmless(path)}: {harmless(holders[0])} lies on it")
    block = int.from_bytes(fcntl.ioctl(fd, BLKSSZGET, bytes(4)), "little")
    uuid = told.get("ID_PART_ENTRY_UUID") or words.get("PARTUUID", "")
    return Partition(fd, path, uuid, disk, os.lseek(fd, 0, os.SEEK_END), block)


def _udev(number: int) -> dict[str, str]:
    """What udev knows of a device; nothing where it does not run. Its files are root's."""
    with contextlib.suppress(OSError):
        text = (UDEV / f"b{os.major(number)}:{os.minor(number)}").read_text(errors="replace")
        return dict(line[2:].split("=", 1) for line in text.splitlines() if line.startswith("E:") and "=" in line)
    return {}


def _refuse_contents(found: Partition) -> None:
    """Both ends hold zeros: no label of a pool, no file system, RAID, LVM or swap lies there, known to zaudit or not."""
    if found.size < 8 * MARGIN:
        raise TargetError(f"{harmless(found.path)} is too small: {8 * MARGIN >> 20} MiB at least")
    buffer = mmap.mmap(-1, MARGIN)
    for at in (0, found.size // PAGE * PAGE - MARGIN):
        try:
            if os.preadv(found.fd, [buffer], at) != MARGIN:
                raise OSError(errno.EIO, "it cannot be read to its end")
        except OSError as error:
            raise TargetError(f"{harmless(found.path)}: {error.strerror}") from None
        if buffer.rfind(b"\0" * MARGIN) != 0:
            where = "first" if at == 0 else "last"
            raise TargetError(
                f"{harmless(found.path)}: its {where} MiB is not empty, so it may be in use. If it is not: "
                f"blkdiscard -z {harmless(found.path)}"
            )


def raw_layouts(found: Partition, mark: str, writers: int, *, control_only: bool) -> list[tuple[Layout, Profile]]:
    """The streams on a partition, from the first MiB on: writers that flush, and the control. Raises TargetError."""
    profiles = [*([] if control_only else [RAW] * writers), CONTROL]
    layouts, base = [], MARGIN
    for number, profile in enumerate(profiles):
        at = 1000 if profile is CONTROL else number
        layout = layout_of(profile, mark, at, base=base, atomic=max(found.block // SECTOR, 1))
        layouts.append((layout, profile))
        base += layout.size
    if base > found.size - MARGIN:
        raise TargetError(f"{harmless(found.path)} is too small: {(base + MARGIN) >> 20} MiB are needed")
    return layouts


def layout_of(profile: Profile, mark: str, stream: int, *, base: int = 0, atomic: int = 1) -> Layout:
    whole = profile.sectors if profile.whole else atomic
    flushed = profile is not CONTROL
    return Layout(mark, stream, profile.slots, profile.sectors, profile.each, whole, flushed, base)


# -- a folder -----------------------------------------------------------------------------------------------------

OPEN = {"dsync": os.O_DSYNC, "direct": os.O_DIRECT}


def file_name(stream: int) -> str:
    return f"{place.FILES}powercut.{stream}"


def create(folder: int, layout: Layout, flush: str) -> Medium:
    """A new file for a stream, with the rights of this process."""
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | OPEN.get(flush, 0)
    fd = os.open(file_name(layout.stream), flags, 0o600, dir_fd=folder)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise TargetError(f"{file_name(layout.stream)} is no plain file")
    os.ftruncate(fd, layout.base + layout.size)
    return Medium(fd, layout, flush)


def open_file(folder: int, layout: Layout) -> Medium:
    """The file of a stream, to be read. Raises OSError."""
    fd = user_files.open_as(file_name(layout.stream), user_files.FILE, folder=folder)
    return Medium(fd, layout, "fsync")


def become(actor: ledger.Actor) -> None:
    """From now on this process has the rights of the owner of the folder, and no way back."""
    if actor.uid:
        os.setgroups([])
        os.setresgid(int(actor.gid), int(actor.gid), int(actor.gid))
        os.setresuid(int(actor.uid), int(actor.uid), int(actor.uid))


class Folder(NamedTuple):
    """A dataset, or a folder of another file system. pool: empty where it is not of OpenZFS."""

    path: str
    dataset: str
    pool: str


def folder_of(name: str) -> Folder:
    """Where a target is mounted. Raises TargetError."""
    if name.startswith("/"):
        code, text = ledger.call(("zfs", "list", "-H", "-o", "name,mountpoint", "--", name))
        rows = [] if code else [line.split("\t") for line in text.splitlines()]
        dataset = rows[0][0] if len(rows) == 1 and len(rows[0]) == 2 else ""
        if not user_files.is_folder(name):
            raise TargetError(f"{harmless(name)} is no directory")
        return Folder(os.path.realpath(name), dataset, dataset.partition("/")[0])
    code, text = ledger.call(("zfs", "list", "-H", "-o", "mounted,mountpoint", "--", name))
    words = text.rstrip("\n").split("\t")
    if code or len(words) != 2:
        raise TargetError(f"{harmless(name)}: {harmless(text.strip()) or 'no such dataset'}")
    if words[0] != "yes":
        raise TargetError(f"{harmless(name)} is not mounted")
    return Folder(words[1], name, name.partition("/")[0])


def disks_below(folder: Folder) -> list[str]:
    """The kernel's names of the drives that a folder lies on, as far as they are seen from here."""
    names = []
    if folder.pool:
        _, text = ledger.call(("zpool", "list", "-vHPL", "-o", "name", folder.pool))
        names = [os.path.basename(path) for path in _LEAF.findall(text)]
        links = [SYS / "class" / "block" / name for name in names]
    else:
        number = os.stat(folder.path).st_dev
        links = [SYS / "dev" / "block" / f"{os.major(number)}:{os.minor(number)}"]
    found = set()
    for link in links:
        with contextlib.suppress(OSError):
            here = link.resolve(strict=True)
            found.add(here.parent.name if (here / "partition").exists() else here.name)
    return sorted(found)


# -- the host -----------------------------------------------------------------------------------------------------

PROC, CRYPTTAB, MDSTAT = Path("/proc"), Path("/etc/crypttab"), Path("/proc/mdstat")
SERVERS = re.compile(r"postgres|mysqld|mariadbd|mongod|etcd|redis-server|qemu-system-.*|qemu-kvm|kvm")
MOST = 1 << 20  # bytes of a file of the host


class Hazard(NamedTuple):
    """What stands against cutting the power of this host. name: for --despite; empty where nothing overrides it."""

    name: str
    text: str


def hazards(pools: Sequence[str], production: Sequence[str], drives: Sequence[Drive]) -> Iterator[Hazard]:
    """What to think of before the first cut. production: names of pools that the administrator has repeated."""
    for pool in pools:
        if pool not in production:
            text = f"pool {harmless(pool)} loses its power, too: --production {harmless(pool)} if that may be"
            yield Hazard("", text)
    if re.search(r"(?m)^[^#\n]*tpm2-device", _text(CRYPTTAB)):
        yield Hazard(
            "tpm",
            "a disk of /etc/crypttab is unlocked by the TPM. Each cut raises its count of attacks, and some dozens may "
            "lock it: have the recovery key at hand (tpm2_getcap properties-variable shows TPM2_PT_LOCKOUT_COUNTER)",
        )
    if re.search(r"\b(resync|recovery|reshape)\b", _text(MDSTAT)):
        yield Hazard("resync", "an md array is being rebuilt (/proc/mdstat)")
    if running := sorted(_servers()):
        yield Hazard("servers", f"{', '.join(map(harmless, running[:6]))} run here: stop them first")
    for each in drives:
        if each.cycles is None:
            text = f"{each.name} shows no count of power cycles (smartctl): no cut of it can be told from a reset"
            yield Hazard("counters", text)
    if not drives:
        yield Hazard("counters", "no drive of this host is known: no cut can be told from a reset")


def _text(path: Path) -> str:
    with contextlib.suppress(OSError):
        return path.read_text(errors="replace")[:MOST]
    return ""


def _servers() -> set[str]:
    found = set()
    for each in PROC.iterdir():
        if each.name.isdigit() and SERVERS.fullmatch(name := _text(each / "comm").strip()):
            found.add(name)
    return found


def pools() -> list[str]:
    code, text = ledger.call(("zpool", "list", "-H", "-o", "name"))
    return [] if code else text.split("\n")[:-1]
