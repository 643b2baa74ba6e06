"""What the kernel logged since it booted of the PCI Express links on the way to each disk, and of its controller's accesses to
memory.

The log names PCI functions, the path of the disk in sysfs every one on the way to it: bridges, switches, its controller. What
is there counts even where the beginning of the log is gone; that nothing is there counts only where it is whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from auditor.derive.scsi_faults import counted
from auditor.facts import (
    HOST,
    Fact,
    Facts,
    Judged,
    Known,
    Subject,
    Unknown,
    number,
    unknown,
)

SUBJECT = "disk"
FACTS = {
    "pcie_corrected": number("errors of links on the way to it that were corrected, of those that the log still names"),
    "pcie_uncorrected": number("errors of links on the way to it that were not corrected"),
    "dma_faults": number("accesses to memory of what it is attached to that the IOMMU refused"),
}
NEEDS = ("host.buses_whole", *(f"host.{name}" for name in FACTS), "disk.sysfs_path", "disk.virtual")
_DEVICE = re.compile(r"/([0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2})\.[0-7](?=/)")
_FUNCTION = re.compile(r"/([0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])(?=/)")


def derive(disk: Subject, facts: Facts) -> Iterator[Fact]:
    place = facts.get(disk, "sysfs_path")
    for name in FACTS:
        log = facts.get(HOST, name)
        if isinstance(log, Unknown) or isinstance(place, Unknown):
            yield Fact(disk, name, log if isinstance(log, Unknown) else place)
        else:
            yield Fact(disk, name, _counted(disk, name, str(place.value), log, facts.get(HOST, "buses_whole")))


def _counted(disk: Subject, name: str, place: str, log: Known, whole: Judged) -> Judged:
    # a controller may read and write as a function that it does not have (Linux drivers/pci/quirks.c quirk_dma_func1_alias)
    part = _DEVICE if name == "dma_faults" else _FUNCTION
    way = set(part.findall(place))
    if not way:  # a path of multipath, a layer, or what is behind no PCI
        return unknown(f"{disk}: no PCI device on the way to it ({place})")
    return counted(disk, lambda at: part.findall(f"/{at}/")[0] in way, log, whole)
