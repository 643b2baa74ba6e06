"""Whether the host starts from one drive only, of a pool that could do without it.

Root or /boot lies on the pool, and of all drives of the host one alone has a partition that a boot loader can be on. Where none
of the pool has one, the host starts from elsewhere. What is on these partitions, and which of them the firmware takes, is not
seen: two are no promise.
"""

from __future__ import annotations

from collections.abc import Iterator

from auditor.derive.at_boot import BOOT
from auditor.derive.mounts_of_zfs import mounted_at
from auditor.facts import (
    HOST,
    BootPartition,
    Fact,
    Facts,
    Judged,
    Known,
    Subject,
    Unknown,
    flag,
    join,
    known,
    rows_of,
    unknown,
    word,
)

SUBJECT = "pool"
FACTS = {
    "boots_host": flag("the root file system or /boot lies on it"),
    "lone_boot_disk": word("its disk that alone of all disks of the host has a boot partition, or empty"),
}
NEEDS = ("host.mount_table", "host.boot_partitions", "pool.data_vdevs", "vdev.leaves", "leaf.disks")


def derive(pool: Subject, facts: Facts) -> Iterator[Fact]:
    """Both facts."""
    table = facts.get(HOST, "mount_table")
    on = [at for at in ("/", BOOT) for name in mounted_at(facts, at) if name.partition("/")[0] == pool.name]
    text = f"mounted at {' and '.join(on)}" if on else "neither / nor /boot lies on it"
    yield Fact(pool, "boots_host", table if isinstance(table, Unknown) else known(bool(on), text, "findmnt -t zfs"))
    yield Fact(pool, "lone_boot_disk", _lone(pool, facts))


def _lone(pool: Subject, facts: Facts) -> Judged:
    vdevs = facts.linked(pool, "data_vdevs")
    leaves = [leaf for vdev in vdevs for leaf in facts.linked(vdev, "leaves")]
    partitions = facts.get(HOST, "boot_partitions")
    seen = [
        partitions,
        facts.get(pool, "data_vdevs"),
        *(facts.get(vdev, "leaves") for vdev in vdevs),
        *(facts.get(leaf, "disks") for leaf in leaves),
    ]
    if unseen := [each for each in seen if isinstance(each, Unknown)]:
        return join(unseen)
    mine = {disk.name for leaf in leaves for disk in facts.linked(leaf, "disks")}
    found = rows_of(partitions, BootPartition)
    # where one has a file system, that is what the host starts from, by UEFI or by GRUB of Proxmox
    efi, bios = ({each.disk for each in found if each.kind == kind} for kind in ("efi", "bios"))
    starting = efi or bios
    if not starting:  # code before the first partition, a network, or udev that was not told of partitions
        return unknown(f"no partition was seen that {pool} could be started from", "lsblk -o NAME,PARTTYPENAME,FSTYPE")
    (lone,) = starting if len(starting) == 1 and starting <= mine and len(mine) > 1 else ("",)
    return Known(lone, partitions.evidence if isinstance(partitions, Known) else ())
