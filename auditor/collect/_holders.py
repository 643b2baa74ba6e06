"""What holds a path or a block device of this host: datasets of ZFS, directly or below zvols, loop devices and other file
systems; or something else. Pure.

What cannot be followed to its end is not known: the piece that was not seen may be the one that forgets. A loop device gives
the path that its file has where it was set up. (Linux drivers/block/loop.c loop_attr_backing_file_show)
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from auditor.collect import _blocks as blocks
from auditor.collect import mounts
from auditor.facts import HOST, Facts, Known, Subject, Unknown, words_of
from auditor.text import harmless

ZVOL = "/dev/zvol/"
# file systems over several devices, of which a mount names one; any other has the number of its block device, and one that has
# none (tmpfs, overlay) lies on none, whatever its mount calls its source: in mounts of his own any user calls it as he likes
# (Linux fs/super.c get_tree_bdev, get_anon_bdev; man 7 user_namespaces)
SEVERAL = frozenset({"btrfs", "bcachefs"})
ELSEWHERE = ("logdev=", "rtdev=")  # of XFS (man 5 xfs)
DEPTH = 6  # file systems on each other; ends a loop of loops


class Place(NamedTuple):
    """datasets: that hold it. how: through what, or why it is not known, or the other file system. off: not on ZFS.

    Neither datasets nor off: not known.
    """

    datasets: tuple[str, ...] = ()
    how: str = ""
    off: bool = False


class Holders:
    """Of one host. table: the mounts as its first process has them."""

    def __init__(self, facts: Facts, inventory: Facts) -> None:
        self.inventory = inventory
        self.nodes = blocks.nodes(facts, inventory)
        seen = facts.get(HOST, "mount_table")
        lines = "".join(f"{line}\n" for line in words_of(seen))
        self.table = seen if isinstance(seen, Unknown) else mounts.mounts(lines)
        self._layered = any(self._held(disk) for disk in inventory.subjects("disk"))

    def path(self, path: str, depth: int = 0) -> Place:
        """Of an absolute path without symbolic links, as the first process of the host sees it."""
        if isinstance(self.table, Unknown):
            return Place(how=self.table.reasons[0].text)
        return self.mount(mounts.mount_of(self.table, path), depth)

    def mount(self, mount: mounts.Mount | None, depth: int = 0) -> Place:
        """A dataset; or what is below another file system on zvols and loop devices."""
        if mount is None:
            return Place(how="no mount holds it")
        if mount.fstype == "zfs":
            return Place((mount.source,))
        if mount.fstype == "fuse" or mount.fstype.startswith("fuse."):  # any user may name its source as he likes
            return Place(how=mount.fstype, off=True)
        if mount.major_minor.startswith("0:") and mount.fstype not in SEVERAL:
            return Place(how=mount.fstype, off=True)
        named_so = mount.source.startswith(("/dev/zd", ZVOL, "/dev/loop"))
        if not mount.source.startswith("/dev/") or not (named_so or self._layered):
            return Place(how=mount.fstype, off=True)
        way = blocks.down(mount.source, self.inventory, self.nodes)
        if isinstance(way, Unknown):
            return Place(how=f"on {mount.fstype}; {way.reasons[0].text}")
        if mount.fstype in SEVERAL or any(each.startswith(ELSEWHERE) for each in mount.shared):
            return Place(how=f"{mount.fstype} may lie on more devices than {mount.source}, which its mount names")
        found = self.disks(way.disks, depth)
        if found.datasets:
            return found._replace(how=f" ({mount.fstype} on {', '.join(way.disks)})")
        return Place(how=mount.fstype, off=True) if found.off else Place(how=f"on {mount.fstype}; {found.how}")

    def device(self, path: str, depth: int = 0) -> Place:
        """Of the block device that a path under /dev means."""
        way = blocks.down(path, self.inventory, self.nodes)
        return Place(how=way.reasons[0].text) if isinstance(way, Unknown) else self.disks(way.disks, depth)

    def disks(self, names: Iterable[str], depth: int = 0) -> Place:
        """Of block devices together: known where all are, and on ZFS or off it as a whole."""
        parts = [(name, self.disk(name, depth)) for name in names]
        for _, part in parts:
            if not part.datasets and not part.off:
                return part
        if off := [name for name, part in parts if part.off]:
            if len(off) < len(parts):
                return Place(how=f"a part of it lies on {', '.join(off)}, which is not on ZFS")
            return Place(how=", ".join(dict.fromkeys(part.how for _, part in parts if part.how)), off=True)
        return Place(tuple(dict.fromkeys(each for _, part in parts for each in part.datasets)))

    def disk(self, name: str, depth: int = 0) -> Place:
        """Of a block device with nothing below it: a zvol, a loop device, or what is no part of ZFS."""
        disk = Subject("disk", name)
        match self.inventory.get(disk, "transport"):
            case Known("zvol"):
                volume = self.volume(name)
                return Place((volume,)) if volume else Place(how=f"udev does not say which volume {name} is")
            case Known("loop"):
                return self._loop(disk, depth)
            case Unknown() as why if "slaves" not in self.inventory.of(disk):
                return Place(how=why.reasons[0].text)
        return Place(off=True)

    def volume(self, name: str) -> str:
        """The dataset of a zvol by its kernel name; empty where its links do not say it. udev spells a space as "+"."""
        links = words_of(self.inventory.get(Subject("disk", name), "devlinks"))
        named = {link.removeprefix(ZVOL).replace("+", " ") for link in links if link.startswith(ZVOL)}
        return named.pop() if len(named) == 1 else ""

    def loop_file(self, name: str) -> str:
        """The path of the file behind a loop device; empty where it is not known."""
        file = self.inventory.get(Subject("disk", name), "loop_backing_file")
        return str(file.value) if isinstance(file, Known) and str(file.value).startswith("/") else ""

    def _loop(self, disk: Subject, depth: int) -> Place:
        path = self.loop_file(disk.name)
        if not path:
            return Place(how=f"/sys/block/{disk.name}/loop/backing_file: does not name a file")
        if path.endswith(" (deleted)"):
            return Place(how=f"the file of {disk.name}: {harmless(path)}")
        if depth >= DEPTH:
            return Place(how=f"more than {DEPTH} devices on each other")
        if not path.startswith("/dev/"):
            return self.path(path, depth + 1)
        return self.device(path, depth + 1)

    def _held(self, disk: Subject) -> bool:
        """Whether something else may hold it."""
        kind = self.inventory.get(disk, "transport")
        return (isinstance(kind, Known) and kind.value == "zvol") or bool(self.loop_file(disk.name))
