"""Which drives of the root pool firmware can start the host from: when the only one dies, the pool lives and the host does not.

A drive that was replaced with zpool replace alone has no EFI system and no BIOS boot partition; Proxmox' installer makes one on
each drive of the pool, and so do the guides for a root file system on ZFS. Where an EFI system partition of another drive is
mounted, the host starts from there, whatever is left on the drives of the pool. (Proxmox VE Administration Guide, ZFS on Linux:
Changing a failed bootable device; UEFI Specification, EFI System Partition; GNU GRUB manual, BIOS installation)
"""

from __future__ import annotations

from collections.abc import Iterator

from auditor.derive.mounts_of_zfs import mounted_at
from auditor.facts import (
    HOST,
    Evidence,
    Fact,
    Facts,
    Judged,
    Known,
    Subject,
    Unknown,
    flag,
    join,
    known,
    words,
    words_of,
)

SUBJECT = "pool"
FACTS = {
    "starts_host": flag(
        "it holds the root file system, and firmware can start the host from at least one of its drives"
    ),
    "drives_without_boot": words("drives of its data that firmware cannot start the host from"),
}
NEEDS = ("host.mount_table", "pool.leaves", "leaf.allocation_class", "leaf.disks", "disk.udev_boot_partitions")

ESP = ("/boot/efi", "/efi", "/boot")


def derive(pool: Subject, facts: Facts) -> Iterator[Fact]:
    table = facts.get(HOST, "mount_table")
    if isinstance(table, Known) and not any(each.partition("/")[0] == pool.name for each in mounted_at(facts, "/")):
        yield Fact(pool, "starts_host", known(False, f"{pool.name} is not the pool of /", "findmnt /"))
        yield Fact(pool, "drives_without_boot", known((), f"{pool.name} is not the pool of /", "findmnt /"))
        return
    found = table if isinstance(table, Unknown) else _boot_of(pool, facts)
    if isinstance(found, Unknown):
        yield from (Fact(pool, name, found) for name in FACTS)
        return
    starting = {f"/dev/{each}" for partitions in found.values() for each in partitions}
    mounted = {each for point in ESP for each in mounted_at(facts, point, "vfat")}
    elsewhere = bool(mounted) and not mounted & starting
    without = tuple(disk for disk, partitions in found.items() if not partitions)
    text = "; ".join(f"{disk}: {' '.join(partitions) or 'none'}" for disk, partitions in found.items())
    seen = (Evidence(f"boot partitions of its drives: {text}", "lsblk -o NAME,PARTTYPENAME"),)
    if elsewhere:
        seen = (Evidence(f"the host starts from {', '.join(sorted(mounted))}", "findmnt -t vfat"),)
    yield Fact(pool, "starts_host", Known(len(without) < len(found) and not elsewhere, seen))
    yield Fact(pool, "drives_without_boot", Known(without, seen))


def _boot_of(pool: Subject, facts: Facts) -> dict[str, tuple[str, ...]] | Unknown:
    """Disk of the data -> its boot partitions."""
    leaves = facts.get(pool, "leaves")
    if isinstance(leaves, Unknown):
        return leaves
    found: dict[str, tuple[str, ...]] = {}
    unseen: list[Unknown] = []
    for leaf in facts.linked(pool, "leaves"):
        asked: list[Judged] = [facts.get(leaf, "allocation_class"), facts.get(leaf, "disks")]
        if isinstance(asked[0], Known) and asked[0].value != "normal":
            continue
        for disk in facts.linked(leaf, "disks"):
            asked.append(facts.get(disk, "udev_boot_partitions"))
            found[disk.name] = words_of(asked[-1])
        unseen += [each for each in asked if isinstance(each, Unknown)]
    return join(unseen) if unseen else dict(sorted(found.items()))
