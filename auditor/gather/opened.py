"""Where what a virtual machine has open lies, by the number of its device."""

from __future__ import annotations

from auditor.facts import Unknown
from auditor.gather import overlay
from auditor.gather.layers import Paths
from auditor.sources import guests, mounts
from auditor.sources.block_tree import Holders, Place


class Numbers:
    """The devices and file systems of this host, by their numbers."""

    def __init__(self, holders: Holders, paths: Paths) -> None:
        self._holders, self._paths = holders, paths

    def place(self, where: str) -> Place:
        """Of what a guest has open, by the number of its device; of a file, what the file system of that number lies on."""
        if where.startswith("/dev/"):
            return self._holders.device(where)
        number, _, node = where.partition(",")
        if isinstance(self._holders.table, Unknown):
            return Place(how=self._holders.table.reasons[0].text)
        if number == guests.BTRFS:
            here = [self._holders.mount(each) for each in self._holders.table if each.fstype == number]
            return next(
                (each for each in here if not each.off), Place(off=bool(here), how=f"{number} is not mounted here")
            )
        mount = self._numbered(number)
        if mount is None and node == guests.NAMELESS:
            return Place(how="memory", off=True)
        if mount is None:  # in mounts of its own
            return self._holders.device(f"/dev/{node}") if node else Place(how=f"device {number} is not mounted here")
        if mount.fstype != mounts.OVERLAY:
            return self._holders.mount(mount)
        real = self._paths.of(overlay.upper(mount))
        return self._holders.path(real) if real else Place(how=f"the upper layer of {mount.mount_point} was not found")

    def _numbered(self, number: str) -> mounts.Mount | None:
        table = () if isinstance(self._holders.table, Unknown) else self._holders.table
        return next((each for each in table if each.major_minor == number), None)

    def volatile(self, where: str) -> bool:
        mount = self._numbered(where)
        return mount is not None and mounts.volatile(mount)
