"""Which pool the host starts from, and whether one drive of it alone can start it."""

from __future__ import annotations

import pytest

from auditor.derive import boot_disks
from auditor.facts import HOST, BootPartition, Fact, Facts, Known, Subject, Value, known, unknown

POOL, MIRROR = Subject("pool", "rpool"), Subject("vdev", "mirror-0", "rpool")
LEAVES = tuple(Subject("leaf", f"{name}3", "rpool") for name in ("sda", "sdb"))
ROW = "41 28 0:51 / {} rw,relatime shared:1 - zfs {} rw,xattr,posixacl"
BOTH = ("sda", "sdb")


def judged(
    partitions: tuple[str, ...] = (), mounts: tuple[str, ...] = (), disks: tuple[str, str] = BOTH, lost: str = ""
) -> dict[str, object]:
    """Fact -> value, or why it is not known."""
    facts = Facts()
    values: list[tuple[Subject, str, Value]] = [
        (HOST, "mount_table", mounts),
        (HOST, "boot_partitions", tuple(BootPartition(*each.split()) for each in partitions)),
        (POOL, "data_vdevs", (MIRROR,)),
        (MIRROR, "leaves", LEAVES),
        *((leaf, "disks", (Subject("disk", name),)) for leaf, name in zip(LEAVES, disks, strict=True)),
    ]
    for subject, name, value in values:
        facts.put(Fact(subject, name, unknown("lost") if name == lost else known(value, name)))
    return {
        each.name: each.value.value if isinstance(each.value, Known) else each.value.reasons[0].text
        for each in boot_disks.derive(POOL, facts)
    }


@pytest.mark.parametrize(
    ("mounts", "boots"),
    [
        ((ROW.format("/", "rpool/ROOT/pve-1"),), True),
        ((ROW.format("/boot", "rpool"),), True),
        ((ROW.format("/", "other/ROOT"), ROW.format("/rpool", "rpool")), False),
        ((ROW.format("/", "rpool2/ROOT"),), False),
    ],
)
def test_boots_host(mounts: tuple[str, ...], boots: bool) -> None:
    assert judged(mounts=mounts)["boots_host"] is boots


def test_mounts_that_are_not_known() -> None:
    assert judged(lost="mount_table")["boots_host"] == "lost"


@pytest.mark.parametrize(
    ("found", "lone"),
    [
        (judged(("efi sda sda2", "efi sdb sdb2")), ""),
        (judged(("efi sda sda2",)), "sda"),
        (judged(("efi sda sda2", "empty sdb sdb2")), "sda"),  # a copied partition table
        (judged(("bios sda sda1", "efi sda sda2", "bios sdb sdb1", "empty sdb sdb2")), "sda"),
        (judged(("bios sda sda1", "bios sdb sdb1")), ""),
        (judged(("bios sdb sdb1",)), "sdb"),
        (judged(("bios sda sda1", "empty sda sda2", "bios sdb sdb1", "empty sdb sdb2")), ""),  # GRUB reads the pool
        (judged(("efi sda sda2", "efi sdc sdc1")), ""),  # or it starts from elsewhere
        (judged(("efi sdc sdc1",)), ""),
        (judged(), "no partition was seen that rpool could be started from"),
        (judged(("efi sda sda2",), disks=("sda", "sda")), ""),  # no other drive
        (judged(("efi sda sda2",), lost="boot_partitions"), "lost"),
        (judged(("efi sda sda2",), lost="data_vdevs"), "lost"),
        (judged(("efi sda sda2",), lost="leaves"), "lost"),
        (judged(("efi sda sda2",), lost="disks"), "lost"),
    ],
)
def test_lone_boot_disk(found: dict[str, object], lone: str) -> None:
    assert found["lone_boot_disk"] == lone
