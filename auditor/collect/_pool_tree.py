"""What ``zpool status`` and ``zdb -C`` have in common: the tree of a pool, how vdevs are called, how numbers look.

Not a collector. Names follow zpool_vdev_name() in lib/libzfs/libzfs_pool.c: an interior vdev is its type and id
(``mirror-0``, ``raidz2-1``, ``draid1:4d:11c:1s-0``), a disk its path without the search folder, and without the
partition when OpenZFS partitioned the whole disk itself (``nvme-X``, not ``nvme-X-part1``), a file its full path. All
collectors of this family use these names, so that their facts meet on the same subject.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from auditor.facts import HOST, Facts, Known, number, word, words
from auditor.host.request import Run

ROW_STATES = ("ONLINE", "DEGRADED", "FAULTED", "OFFLINE", "UNAVAIL", "REMOVED", "SPLIT", "UNKNOWN", "AVAIL", "INUSE")
POOL_STATES = ("ONLINE", "DEGRADED", "FAULTED", "OFFLINE", "UNAVAIL", "REMOVED", "SUSPENDED")
TOP_TYPES = ("mirror", "raidz1", "raidz2", "raidz3", "draid", "disk", "file", "spare", "replacing", "missing")
DEPTH = 8  # pool, raidz, spare, replacing, disk: more than OpenZFS nests

ASHIFT = number("block size of the top-level vdev as a power of two: 9 is 512 bytes, 12 is 4096 bytes")
GUID = word("the 64-bit identifier, in decimal")
PATH = word("path of the device, with partition, as OpenZFS opens it")
TREE = words(
    "its leaves as this command nests them, a line each: top-level vdev, name, GUID, path, class, with a TAB between"
)
PARITY = number("disks that a raidz or draid can lose; 0 for mirrors and single disks, as the property has it")

# zpool_default_import_path[] in lib/libzutil/os/linux/zutil_import_os.c, in this order
_FOLDERS = tuple(f"/dev/disk/by-{each}/" for each in ("vdev", "partlabel", "partuuid", "label", "uuid", "id", "path"))
_SEARCH = (_FOLDERS[0], "/dev/mapper/", *_FOLDERS[1:], "/dev/")
_INTERIOR = re.compile(r"(mirror|raidz[123]|draid|spare|replacing|indirect|hole|missing)([\d:a-z]*)(-\d+)?")
_PARTITION = re.compile(r"(.+?)-part\d+|(.+\d)p\d+|([hsv]d[a-z]+|xvd[a-z]+)\d+")


class Row(NamedTuple):
    """One vdev. type: root, mirror, raidz1-3, draid, spare, replacing, indirect, hole, missing, disk, file, dspare, or
    empty where it cannot be told. state, path, guid, note: empty where the source does not say. counts: those of
    read, write, checksum and slow that it says. ashifts: (configured, physical) where the source says that they differ.
    space: (allocated, all) bytes of a top-level vdev where the source says so.
    """

    name: str
    type: str = ""
    state: str = ""
    path: str = ""
    guid: str = ""
    counts: Mapping[str, int] = {}
    note: str = ""
    ashifts: tuple[int, ...] = ()
    children: tuple[Row, ...] = ()
    space: tuple[int, ...] = ()

    def leaves(self, replacing: bool = False) -> Iterator[tuple[Row, bool]]:
        """All leaves, each with whether a ``replacing`` vdev stands above it."""
        if not self.children and self.type not in ("root", "indirect", "hole", "missing"):
            yield self, replacing
        for child in self.children:
            yield from child.leaves(replacing or self.type == "replacing")


class Told(NamedTuple):
    """A leaf as one command tells it, to be compared with another: names as ``zpool status`` has them, or empty.

    top: the name of its top-level vdev. allocation: normal, log, special, dedup, cache or spare; "not log" from a command
    that can say no more; empty from one that says nothing.
    """

    top: str
    name: str
    guid: str = ""
    path: str = ""
    allocation: str = ""

    def line(self) -> str:
        """As one string, for a fact."""
        return "\t".join(each.replace("\t", " ") for each in self)

    @classmethod
    def of_line(cls, line: str) -> Told:
        """The reverse."""
        return cls(*line.split("\t"))


class Scan(NamedTuple):
    """One scan. function: scrub, resilver, errorscrub. state: finished, in progress, canceled, paused.

    end_s: seconds since the epoch, or -1 where not said; repaired (bytes) and errors likewise. text: as printed.
    start_s: when it began, of one that has not ended. pass_start_s: since when it runs without a restart of the pool. moved: 1
    where it has read something since then, 0 where it has not.
    """

    function: str
    state: str
    text: str
    end_s: int = -1
    errors: int = -1
    repaired: int = -1
    start_s: int = -1
    pass_start_s: int = -1
    moved: int = -1


class PoolStatus(NamedTuple):
    """One pool of ``zpool status``.

    tops: (allocation class, top-level vdev) of class normal, dedup, special and log; cache and spares apart.
    errors: the text of the ``errors:`` line. data_errors: -1 where not said. listed: the damaged files that are named.
    files: all of them, or None where they are not listed or the list may be cut off. complete: the end of the pool was
    seen; without it nothing may be concluded from absence.
    """

    name: str
    state: str = ""
    guid: str = ""
    headers: Mapping[str, str] = {}
    scans: tuple[Scan, ...] | None = None
    root: Row | None = None
    tops: tuple[tuple[str, Row], ...] = ()
    cache: tuple[Row, ...] = ()
    spares: tuple[Row, ...] = ()
    errors: str = ""
    data_errors: int = -1
    listed: tuple[str, ...] = ()
    files: tuple[str, ...] | None = None
    complete: bool = False


def top_type(name: str, children: bool) -> str:
    """The type of an interior vdev from its name; empty when it has none that is known, or is a leaf."""
    found = _INTERIOR.fullmatch(name)
    if not found or (not children and not (found[3] and found[1] in ("indirect", "hole", "missing"))):
        return ""
    return found[1]


def no_children(name: str) -> None:
    """Raises ValueError where a vdev that is made of others stands without them: their rows are lost."""
    found = _INTERIOR.fullmatch(name)
    if found and found[3] and found[1] not in ("indirect", "hole", "missing"):
        raise ValueError(f"zpool status: {name} without what it is made of")


def parity(name: str, kind: str) -> int:
    """Parity from the name of a vdev ("raidz2-0", "draid1:4d:11c:1s-0"); -1 when it does not say."""
    if kind in ("mirror", "disk", "file"):
        return 0
    found = re.match(r"(?:raidz|draid)([123])\b", name)
    return int(found[1]) if found else -1


def leaf_type(name: str) -> str:
    """disk, file or dspare from the name: only files keep a path that is not below /dev."""
    if re.fullmatch(r"draid[123]-\d+-\d+", name):
        return "dspare"
    return "file" if name.startswith("/") and not name.startswith("/dev/") else "disk"


def display_name(path: str, whole_disk: bool) -> str:
    """The name that ``zpool status`` gives a disk with this path."""
    name = next((path[len(each) :] for each in _SEARCH if path.startswith(each)), path)
    found = _PARTITION.fullmatch(name) if whole_disk else None
    return next(each for each in found.groups() if each) if found else name


class Paths:
    """The paths of the leaves of a pool, by the names that they may have."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._by_name: tuple[dict[str, set[str]], ...] = ({}, {}, {})  # those in front decide
        for path in paths:
            last = path.rpartition("/")[2]  # zfs_strip_path() of 2.1
            names = ({path, display_name(path, False)}, {display_name(path, True)}, {last})
            for table, several in zip(self._by_name, names, strict=True):
                for name in several:
                    table.setdefault(name, set()).add(path)

    def of(self, name: str) -> str:
        """The path of the leaf that is called name; empty when none or several could be it."""
        found = next((table[name] for table in self._by_name if name in table), ())
        return next(iter(found)) if len(found) == 1 else ""


def count(text: object) -> int:
    """A count as it is printed: 12, "12", "4.11K" (about 4208: zfs_nicenum has units of 1024). -1 when it is none."""
    return _scaled(text)


def size(text: object) -> int:
    """Bytes as they are printed: 4096, "0B", "66.5M" (units of 1024). -1 when it is none, or one that cannot be."""
    return _scaled(text)


def _scaled(text: object) -> int:
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([KMGTPE]?)B?", str(text), re.ASCII)
    if not found or isinstance(text, bool):
        return -1
    whole, fraction = [*found[1].split("."), ""][:2]
    scale = 1024 ** " KMGTPE".find(found[2] or " ")
    value = int(whole) * scale + int(fraction or 0) * scale // 10 ** len(fraction)
    return value if value < 1 << 63 else -1  # an underflowed counter of 64 bits


def speaks(facts: Facts, major: int, minor: int) -> bool:
    """Whether both the module and the commands are known to be of this release or later."""
    versions = [facts.get(HOST, name) for name in ("zfs_version", "zfs_userland_version")]
    known = [each.value for each in versions if isinstance(each, Known) and isinstance(each.value, tuple)]
    return bool(known) and all(_pair(each) >= (major, minor) for each in known)


def before(facts: Facts, major: int, minor: int) -> bool:
    """Whether the commands are known to be older than this release. Those before 0.8 cannot say it (``zfs version`` came with
    0.8; OpenZFS cmd/zfs/zfs_main.c): then the module tells, which they fit."""
    for name in ("zfs_userland_version", "zfs_version"):
        version = facts.get(HOST, name)
        if isinstance(version, Known) and isinstance(version.value, tuple):
            return _pair(version.value) < (major, minor)
    return False


def _pair(version: tuple[object, ...]) -> tuple[int, int]:
    numbers = [each if isinstance(each, int) else 0 for each in (*version, 0, 0)]
    return numbers[0], numbers[1]


def zpool(*argv: str) -> Run:
    """A zpool command."""
    return Run(("zpool", *argv), package="zfsutils-linux")
