"""What all legs of a mirror are attached to: a controller, a carrier card or a PCIe switch.

The kernel's device tree names every PCI function on the way to a disk (``/devices/pci0000:00/0000:00:1c.0/0000:02:00.0/
nvme/nvme0/nvme0n1``). What the paths of all legs share below the host bridge is a single point of failure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from auditor.derive.combine import about, every
from auditor.facts import Evidence, Fact, Facts, Judged, Known, Subject, Unknown, flag, is_true, unknown, word

SUBJECT = "vdev"
FACTS = {
    "legs_share_controller": flag("all its disks are attached to one PCI device: controller, carrier card or switch"),
    "shared_controller": word("that PCI device, or empty"),
}
_FUNCTION = re.compile(r"/([0-9a-f]{4,}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])(?=/)")


def derive(vdev: Subject, facts: Facts) -> Iterator[Fact]:
    """Both facts; unknown for a virtual disk, and for a vdev of one disk, which has no legs."""
    shared = _shared(vdev, facts)
    if isinstance(shared, Unknown):
        yield from (Fact(vdev, name, shared) for name in FACTS)
        return
    yield Fact(vdev, "legs_share_controller", Known(bool(shared.value), shared.evidence))
    yield Fact(vdev, "shared_controller", shared)


def _shared(vdev: Subject, facts: Facts) -> Known | Unknown:
    leaves = facts.linked(vdev, "leaves")
    found = every([facts.get(vdev, "leaves"), *(facts.get(leaf, "disks") for leaf in leaves)])
    if isinstance(found, Unknown):
        return found
    disks = sorted({disk for leaf in leaves for disk in facts.linked(leaf, "disks")})
    ways = every(_way(disk, facts) for disk in disks)
    if isinstance(ways, Unknown):
        return ways
    if len(disks) < 2:
        return unknown(f"{vdev}: fewer than two disks are known of it")
    common = _common([_FUNCTION.findall(str(way.value)) for way in ways])
    seen: tuple[Evidence, ...] = tuple(
        piece for disk, way in zip(disks, ways, strict=True) for piece in about(disk, way)
    )
    return Known(common, seen)


def _way(disk: Subject, facts: Facts) -> Judged:
    virtual = facts.get(disk, "virtual")
    if is_true(virtual):
        return unknown(f"{disk.name} is virtual: what it is attached to is decided on its host")
    path = facts.get(disk, "sysfs_path")
    if isinstance(path, Known) and not _FUNCTION.search(str(path.value)):
        return unknown(f"{disk.name}: no PCI device on the way to it ({path.value})")
    return virtual if isinstance(virtual, Unknown) else path


def _common(ways: list[list[str]]) -> str:
    """The last PCI function that all ways pass, or empty."""
    last = ""
    for step in zip(*ways, strict=False):
        if len(set(step)) > 1:
            break
        last = step[0]
    return last
