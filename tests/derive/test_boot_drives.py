"""From which drives of the root pool firmware can start the host."""

from __future__ import annotations

import pytest

from auditor.derive import boot_drives
from auditor.facts import HOST, Fact, Facts, Judged, Known, Subject, known, unknown

POOL = Subject("pool", "rpool")
ROOT = "25 1 0:23 / / rw,relatime shared:1 - zfs rpool/ROOT/pve-1 rw,xattr"
ESP = "30 25 8:1 / /boot/efi rw,relatime shared:2 - vfat /dev/{} rw,fmask=0022"
OTHER = "25 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sdz1 rw"


def told(partitions: dict[str, tuple[str, Judged]], table: Judged) -> list[object]:
    """partitions: disk -> (class of its leaf, boot partitions)."""
    facts = Facts(0)
    leaves = tuple(Subject("leaf", f"{disk}3", "rpool") for disk in partitions)
    facts.put(Fact(HOST, "mount_table", table))
    facts.put(Fact(POOL, "leaves", known(leaves, "")))
    for leaf, (disk, (kind, boot)) in zip(leaves, partitions.items(), strict=True):
        facts.put(Fact(leaf, "allocation_class", known(kind, "")))
        facts.put(Fact(leaf, "disks", known((Subject("disk", disk),), "")))
        facts.put(Fact(Subject("disk", disk), "udev_boot_partitions", boot))
    found = [(fact.name, fact.value) for fact in boot_drives.derive(POOL, facts)]
    assert [name for name, _ in found] == list(boot_drives.FACTS)
    return [value.value if isinstance(value, Known) else None for _, value in found]


HAS, NONE = known(("sda1", "sda2"), "sda1 sda2"), known((), "none of these")
UNSEEN = unknown("udevadm: not installed")


@pytest.mark.parametrize(
    ("partitions", "table", "says"),
    [
        ({"sda": ("normal", HAS), "sdb": ("normal", HAS)}, known((ROOT,), ""), [True, ()]),
        ({"sda": ("normal", HAS), "sdb": ("normal", NONE)}, known((ROOT,), ""), [True, ("sdb",)]),
        ({"sda": ("normal", HAS), "nvme0n1": ("log", NONE)}, known((ROOT,), ""), [True, ()]),
        ({"sda": ("normal", NONE), "sdb": ("normal", NONE)}, known((ROOT,), ""), [False, ("sda", "sdb")]),
        ({"sda": ("normal", HAS), "sdb": ("normal", NONE)}, known((OTHER,), ""), [False, ()]),
        ({"sda": ("normal", HAS), "sdb": ("normal", NONE)}, known((ROOT, ESP.format("sda2")), ""), [True, ("sdb",)]),
        ({"sda": ("normal", HAS), "sdb": ("normal", NONE)}, known((ROOT, ESP.format("sdz1")), ""), [False, ("sdb",)]),
        ({"sda": ("normal", HAS), "sdb": ("normal", UNSEEN)}, known((ROOT,), ""), [None, None]),
        ({"sda": ("normal", HAS), "sdb": ("normal", NONE)}, unknown("not read"), [None, None]),
    ],
)
def test_drives_without_a_boot_partition(
    partitions: dict[str, tuple[str, Judged]], table: Judged, says: list[object]
) -> None:
    assert told(partitions, table) == says
