"""What is mounted where, now and by ``/etc/fstab``."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

from auditor.facts import HOST, Fact, Spec, Subject, known
from auditor.host.request import WITNESS, Files, Read
from auditor.sources.source import integer, source


class FstabNeed(NamedTuple):
    """point: a mount point of fstab; path: that, or what is bound there, which has to be there before. Escaped as in fstab."""

    point: str
    path: str


PATH = "/etc/fstab"
LATER = ("noauto", "_netdev", "x-systemd.automount")  # not mounted, or after the file systems of this host
BOUND = ("bind", "rbind")
_OPTIONS = (*LATER, *BOUND)
_PLACE = re.compile(r"/[!-~]*")
_WAITS = re.compile(r"x-systemd\.(?:requires|after)=[\w@.\\:-]{1,255}", re.ASCII)
_NONE = "defaults"


def keep_fstab(text: str) -> str:
    """``SOURCE POINT TYPE OPTIONS`` for each line with a mount point: a path that is bound or -, and zfs or -. What was kept is
    kept again."""
    kept = []
    for what, point, kind, *more in (line.split() for line in text.splitlines() if len(line.split()) > 2):
        if not what.startswith("#") and _PLACE.fullmatch(point):
            options = [each for each in ",".join(more[:1]).split(",") if each in _OPTIONS or _WAITS.fullmatch(each)]
            bound = what if {*options} & {*BOUND} and _PLACE.fullmatch(what) else "-"
            kept.append(f"{bound} {point} {'zfs' if kind == 'zfs' else '-'} {','.join(options) or _NONE}\n")
    return "".join(kept)


class Mount(NamedTuple):
    """One line. source: the dataset, when fstype is zfs. options: of mount and file system; shared: of the file system
    alone. number and parent: which mount this one covers a folder of. root: what of the file system is mounted; its path,
    of a device node."""

    mount_point: str
    fstype: str
    source: str
    major_minor: str
    options: tuple[str, ...]
    number: int
    parent: int
    shared: tuple[str, ...] = ()
    root: str = "/"


OVERLAY = "overlay"
VOLATILE = ("volatile", "fsync=volatile")  # as older kernels print it, and as 6.18 does


def volatile(mount: Mount) -> bool:
    """Whether it is an overlay of which each fsync is left out. (Linux Documentation/filesystems/overlayfs.rst)"""
    return mount.fstype == OVERLAY and any(each in mount.shared for each in VOLATILE)


DEEP = 1_000  # on the way to one path: whoever has a mount namespace of his own may stack a hundred thousand


class Table(list[Mount]):
    """All mounts in their order, and where to find them: a process of anybody has as many as the kernel allows, and names as
    many paths. Not to be changed."""

    @cached_property
    def at(self) -> dict[str, list[Mount]]:
        found: dict[str, list[Mount]] = {}
        for each in self:
            found.setdefault(each.mount_point, []).append(each)
        return found

    @cached_property
    def root(self) -> Mount | None:
        """The last that is mounted at / and covers nothing that is in the table."""
        numbers = Counter(each.number for each in self)
        here = (
            each for each in reversed(self.at.get("/", ())) if not numbers[each.parent] - (each.number == each.parent)
        )
        return next(here, None)


def mounts(text: str) -> Table:
    """All mounts in the order of the file; raises ValueError for a line that is not one."""
    if text and not text.endswith("\n"):
        raise ValueError("the last mount is cut off")
    return Table(_mount(line) for line in text.split("\n")[:-1])


def mount_of(table: Sequence[Mount], path: str) -> Mount | None:
    """The mount that an absolute path without symbolic links is on, as the kernel walks there; None: none, or more on the
    way than zaudit follows. A later mount over the same folder, or one above it, hides what was there: from the root, each
    step goes to the mount that covers the first folder on the way."""
    table = table if isinstance(table, Table) else Table(table)
    on_the_way = [each for folder in _folders(path) if folder in table.at for each in table.at[folder]]
    if len(on_the_way) > DEEP:
        return None
    if (
        here := table.root
    ) is None:  # a root that is not in the table (chroot): the longest mount point, the last of several
        return on_the_way[-1] if on_the_way else None
    over: dict[int, list[Mount]] = {}
    for each in on_the_way:
        over.setdefault(each.parent, []).append(each)
    passed = {here.number}
    while True:
        next_ = [each for each in over.get(here.number, ()) if each.number not in passed]
        if not next_:
            return here
        here = [each for each in next_ if each.mount_point == next_[0].mount_point][-1]
        passed.add(here.number)


def _folders(path: str) -> Iterator[str]:
    """The root, each folder on the way, and the path itself."""
    at = 0
    yield "/"
    while (at := path.find("/", at + 1)) > 0:
        yield path[:at]
    if len(path) > 1:
        yield path


def _mount(line: str) -> Mount:
    """``36 35 98:0 /root /mount/point rw,noatime shared:1 - zfs tank/db rw,xattr``: fields before the dash vary."""
    before, dash, after = line.partition(" - ")
    first, last = before.split(" "), after.split(" ")
    if not dash or len(first) < 6 or len(last) < 3 or not (first[0].isdigit() and first[1].isdigit()):
        raise ValueError("a line is not a mount")
    shared = tuple(last[2].split(","))
    options = tuple(dict.fromkeys((*first[5].split(","), *shared)))
    numbers = integer(first[0]), integer(first[1])
    return Mount(plain(first[4]), last[0], plain(last[1]), first[2], options, *numbers, shared, plain(first[3]))


def inside(path: str, folder: str) -> bool:
    """Whether a path is a folder, or lies in it."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def plain(field: str) -> str:
    """Space, TAB, newline and backslash come as three octal digits, in an option the comma, too."""
    return re.sub(r"\\([0-3][0-7]{2})", lambda found: chr(int(found[1], 8)), field)


TABLES = ("/proc/1/mountinfo", "/proc/self/mountinfo")
NAMESPACES = ("/proc/1/ns/mnt", "/proc/self/ns/mnt")


@source(
    "zfs_mounts",
    "host",
    ask=Read((*TABLES, *NAMESPACES)),
    facts={
        "own_mount_namespace": Spec.flag(
            "zaudit runs in another mount namespace than the first process, and sees other mounts"
        ),
        "zfs_mounts": Spec.words(
            "DATASET=ro or rw of each file system of ZFS that is mounted: as the file system is, not the mount"
        ),
        "mount_table": Spec.words("the lines of the table of mounts of the host"),
        "hidden_mounts": Spec.words("DATASET at PATH below SOURCE: mounted file systems of ZFS that no path leads to"),
    },
)
def zfs_mounts(reply: Files, host: Subject) -> Iterator[Fact]:
    """Which file systems of ZFS are mounted, and whether they can be written to: as the first process of the host sees it.

    The commands of ZFS overlay what a dataset is set to with the options of the mount that they find in their own mount
    namespace, and call the source "temporary" (get_numeric_property() in lib/libzfs/libzfs_dataset.c). A sandbox or container
    whose mounts are read-only so turns readonly into "on" for itself alone. What stands after the dash of a line is of the file
    system, and so the same in every namespace: ro there means that nobody writes. (man 5 proc_pid_mountinfo, man 7
    mount_namespaces) Either table is enough: both name what is mounted. Raises ValueError for what is no table of mounts."""
    first, own = (reply.links.get(path, "") for path in NAMESPACES)
    if all(re.fullmatch(r"mnt:\[\d+\]", each) for each in (first, own)):
        text = f"{NAMESPACES[1]} is {own}, {NAMESPACES[0]} {first}"
        yield Fact(HOST, "own_mount_namespace", known(first != own, text, f"readlink {' '.join(NAMESPACES)}"))
    tables = [path for path in TABLES if path in reply.text]
    if not tables:
        return
    for path in tables:
        if not mounts(reply.text[path]).at.get("/"):
            raise ValueError(f"{path} is no whole table: nothing is mounted at /")
    path = tables[0]
    if path == TABLES[0] or not first or first == own:
        lines = tuple(reply.text[path].split("\n")[:-1])
        yield Fact(HOST, "mount_table", known(lines, f"{len(lines)} mounts", f"cat {path}"))
        table = mounts(reply.text[path])
        if (hidden := _hidden(table)) is not None:
            text = "; ".join(hidden) or "a path leads to each"
            yield Fact(HOST, "hidden_mounts", known(hidden, text, "findmnt -t zfs"))
    found: dict[str, str] = {}
    for path in tables:
        for mount in mounts(reply.text[path]):
            if mount.fstype == "zfs" and "@" not in mount.source:
                now = "ro" if "ro" in mount.shared else "rw"
                found[mount.source] = "rw" if "rw" in (now, found.get(mount.source)) else now
    text = f"{len(found)} file systems of ZFS are mounted"
    pairs = tuple(f"{name}={how}" for name, how in sorted(found.items()))
    yield Fact(HOST, "zfs_mounts", known(pairs, text, f"grep ' - zfs ' {' '.join(tables)}"))


def _hidden(table: Table) -> tuple[str, ...] | None:
    """A later mount over a folder above hides it; what is mounted elsewhere, too, may be seen there. None where more mounts are
    on the way than zaudit follows: whoever owns a folder can stack them with FUSE."""
    places: dict[str, str] = {}
    seen: set[str] = set()
    for mount in table:
        if mount.fstype == "zfs" and "@" not in mount.source:
            if (here := mount_of(table, mount.mount_point)) is None:
                return None
            if here.source == mount.source:
                seen.add(mount.source)
            else:
                what = here.source if here.fstype == "zfs" else here.fstype
                places.setdefault(mount.source, f"{mount.mount_point} below {what}, mounted at {here.mount_point}")
    return tuple(f"{source} at {places[source]}" for source in sorted(places.keys() - seen))


REQUIRES = "x-systemd.requires="


@source(
    "fstab",
    "host",
    ask=Read((PATH, WITNESS)),
    keeps={PATH: keep_fstab},
    facts={
        "fstab_needs": Spec.rows(FstabNeed, "mounts by fstab that wait for nothing of ZFS"),
        "fstab_zfs": Spec.words("mount points of file systems of ZFS that fstab mounts when the host starts"),
        "fstab_requires": Spec.words("units for ZFS that mounts by fstab start before them (x-systemd.requires)"),
    },
)
def fstab(reply: Files, host: Subject) -> Iterator[Fact]:
    """``/etc/fstab``: what systemd mounts by it when the host starts without waiting for the file systems of ZFS, and which
    folders that needs. (man 5 fstab, man 5 systemd.mount)

    That there is no such file means that nothing is mounted by it only where files could be read at all. Of the lines as they
    are kept."""
    reply.witness()
    if PATH not in reply.text and not reply.absent(PATH):
        return
    lines = keep_fstab(reply.text.get(PATH, "")).splitlines()
    needs = tuple(each for line in lines for each in _needs(*line.split(" ")))
    text = f"{len(lines)} mounts in {PATH}" if lines else f"nothing is mounted by {PATH}"
    yield Fact(HOST, "fstab_needs", known(needs, text, f"cat {PATH}"))
    rows = (line.split(" ") for line in lines)
    of_zfs = tuple(point for _, point, kind, options in rows if kind == "zfs" and "noauto" not in options.split(","))
    text = ", ".join(of_zfs) or f"no file system of ZFS is in {PATH}"
    yield Fact(HOST, "fstab_zfs", known(of_zfs, text, f"grep zfs {PATH}"))
    units = tuple(sorted({each for line in lines for each in _requires(line.rpartition(" ")[2].split(","))}))
    text = ", ".join(units) or f"no unit for ZFS is required in {PATH}"
    yield Fact(HOST, "fstab_requires", known(units, text, f"cat {PATH}"))


def _needs(source: str, point: str, kind: str, options: str) -> Iterator[FstabNeed]:
    waits = (each in LATER or each.partition("=")[2].startswith("zfs") for each in options.split(","))
    if kind != "zfs" and not any(waits):
        yield from (FstabNeed(point, path) for path in (point, source) if path.startswith("/"))


def _requires(options: list[str]) -> Iterator[str]:
    if not {"noauto", "x-systemd.automount"} & {*options}:
        names = [each.removeprefix(REQUIRES) for each in options if each.startswith(REQUIRES)]
        yield from (each for each in names if each.startswith("zfs"))
