"""``/proc/self/mountinfo``: which mount, and so which dataset, a path is on. (man 5 proc_pid_mountinfo)"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

from auditor.collect._json import integer


class Mount(NamedTuple):
    """One line. source: the dataset, when fstype is zfs. options: of the mount and of the file system together; shared: of the
    file system alone, which are the same wherever else it is mounted.

    number and parent: which mount this one covers a folder of. root: what of the file system is mounted: of a device node that
    was mounted alone its path there.
    """

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
        """By mount point."""
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
    """The mount that an absolute path without symbolic links is on, as the kernel walks there; None: no mount holds it, or more
    are on the way than zaudit follows.

    A later mount over the same folder, or over one above it, hides what was there, so the longest mount point alone
    does not decide: from the root, each step goes to the mount that covers the first folder on the way.
    """
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


def plain(field: str) -> str:
    """Space, TAB, newline and backslash come as three octal digits, in an option the comma, too."""
    return re.sub(r"\\([0-3][0-7]{2})", lambda found: chr(int(found[1], 8)), field)
