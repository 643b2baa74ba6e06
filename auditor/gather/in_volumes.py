"""What of this host itself lies in volumes of ZFS: swap, LVM and multipath."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from auditor.facts import Evidence, Judged, Known, Unknown, unknown, words_of
from auditor.sources import block_tree
from auditor.sources.block_tree import Holders
from auditor.text import harmless

TOLD = 50  # guests and the like of one dataset: whoever has files on it can start thousands
MAPPERS = {"LVM": "lvm", "mpath": "multipath"}  # by how the UUID of a device-mapper device begins


def some(names: Sequence[str]) -> Sequence[str]:
    return [*names[:TOLD], *(each.text for each in more(len(names)))]


def more(count: int) -> Sequence[Evidence]:
    return [Evidence(f"{count - TOLD:,} more")] if count > TOLD else []


def mapped(holders: Holders) -> Mapping[str, Sequence[str]] | Unknown:
    """By dataset; unknown where a device of LVM or multipath does not lead to its disks. (man 8 dmsetup: the UUID begins with
    the subsystem)"""
    inventory = holders.inventory
    found: dict[str, list[str]] = defaultdict(list)
    disks = list(inventory.subjects("disk"))
    if not any("slaves" in inventory.of(disk) for disk in disks):
        return unknown("/sys/class/block was not read: what lies in volumes is not known")
    for disk in disks:
        transport, uuid, name = (inventory.get(disk, each) for each in ("transport", "dm_uuid", "dm_name"))
        if not isinstance(transport, Known) or transport.value != "dm":
            continue
        if isinstance(uuid, Unknown):
            if isinstance(name, Known):  # it has none: neither LVM nor multipath made it
                continue
            return uuid
        if not (kind := MAPPERS.get(str(uuid.value).partition("-")[0])):
            continue
        way = block_tree.down(f"/dev/{disk.name}", inventory, holders.nodes)
        if isinstance(way, Unknown):
            return way
        named = str(name.value) if isinstance(name, Known) else disk.name
        for volume in {each for below in way.disks for each in holders.disk(below).datasets}:
            found[volume].append(harmless(f"{named} ({kind})"))
    return {each: some(names) for each, names in found.items()}


def swap(swaps: Judged, holders: Holders) -> Judged:
    """Of the devices; what a file lies on is no dataset, as OpenZFS refuses to swap to its files."""
    if isinstance(swaps, Unknown):
        return swaps
    found: list[Evidence] = []
    for path in words_of(swaps):
        if not path.startswith("/dev/"):
            continue
        place = holders.device(path)
        if place.datasets:
            found.append(Evidence(harmless(f"{path} on {', '.join(place.datasets)}"), "swapon --show"))
        elif not place.off:
            return unknown(harmless(f"{path}, which the host swaps to: {place.how}"))
    return Known(tuple(each.text for each in found), (*found,) or swaps.evidence)
