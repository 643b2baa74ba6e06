"""``/proc/self/mountinfo``: which mount, and so which dataset, a path is on. (man 5 proc_pid_mountinfo)"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from auditor.collect._json import integer


class Mount(NamedTuple):
    """One line. source: the dataset, when fstype is zfs. options: of the mount and of the file system together; shared: of the
    file system alone, which are the same wherever else it is mounted.

    number and parent: which mount this one covers a folder of.
    """

    mount_point: str
    fstype: str
    source: str
    major_minor: str
    options: tuple[str, ...]
    number: int
    parent: int
    shared: tuple[str, ...] = ()


OVERLAY = "overlay"
VOLATILE = ("volatile", "fsync=volatile")  # as older kernels print it, and as 6.18 does


def volatile(mount: Mount) -> bool:
    """Whether it is an overlay of which each fsync is left out. (Linux Documentation/filesystems/overlayfs.rst)"""
    return mount.fstype == OVERLAY and any(each in mount.shared for each in VOLATILE)


def mounts(text: str) -> list[Mount]:
    """All mounts in the order of the file; raises ValueError for a line that is not one."""
    if text and not text.endswith("\n"):
        raise ValueError("the last mount is cut off")
    return [_mount(line) for line in text.split("\n")[:-1]]


def mount_of(table: Sequence[Mount], path: str) -> Mount | None:
    """The mount that an absolute path without symbolic links is on, as the kernel walks there; None: no mount holds it.

    A later mount over the same folder, or over one above it, hides what was there, so the longest mount point alone
    does not decide: from the root, each step goes to the mount that covers the first folder on the way.
    """
    here = next((each for each in reversed(table) if each.mount_point == "/" and not _has_parent(each, table)), None)
    on_the_way = [each for each in table if _holds(each.mount_point, path)]
    if here is None:  # a root that is not in the table (chroot): the longest mount point, the last of several
        return max(reversed(on_the_way), key=lambda each: len(each.mount_point), default=None)
    passed = {here.number}
    while True:
        over = [each for each in on_the_way if each.parent == here.number and each.number not in passed]
        if not over:
            return here
        shortest = min(len(each.mount_point) for each in over)
        here = [each for each in over if len(each.mount_point) == shortest][-1]
        passed.add(here.number)


def _mount(line: str) -> Mount:
    """``36 35 98:0 /root /mount/point rw,noatime shared:1 - zfs tank/db rw,xattr``: fields before the dash vary."""
    before, dash, after = line.partition(" - ")
    first, last = before.split(" "), after.split(" ")
    if not dash or len(first) < 6 or len(last) < 3 or not (first[0].isdigit() and first[1].isdigit()):
        raise ValueError("a line is not a mount")
    shared = tuple(last[2].split(","))
    options = tuple(dict.fromkeys((*first[5].split(","), *shared)))
    numbers = integer(first[0]), integer(first[1])
    return Mount(plain(first[4]), last[0], plain(last[1]), first[2], options, *numbers, shared)


def plain(field: str) -> str:
    """Space, TAB, newline and backslash come as three octal digits, in an option the comma, too."""
    return re.sub(r"\\([0-3][0-7]{2})", lambda found: chr(int(found[1], 8)), field)


def _holds(mount_point: str, path: str) -> bool:
    return path == mount_point or path.startswith(mount_point.rstrip("/") + "/")


def _has_parent(mount: Mount, table: Sequence[Mount]) -> bool:
    return any(each.number == mount.parent and each is not mount for each in table)
