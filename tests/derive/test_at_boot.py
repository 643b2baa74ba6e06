"""Which file system is /boot."""

from __future__ import annotations

import pytest

from auditor.derive import at_boot
from auditor.facts import HOST, Fact, Facts, Known, Subject, Unknown, known, unknown

DATASET = Subject("dataset", "bpool/BOOT/ubuntu")
ROW = "41 28 0:51 / {} rw,relatime shared:1 - {} {} rw,xattr,posixacl"


def judged(mountpoint: Known | Unknown, table: Known | Unknown) -> Known | Unknown:
    facts = Facts()
    facts.put(Fact(DATASET, "mountpoint", mountpoint))
    facts.put(Fact(HOST, "mount_table", table))
    (fact,) = at_boot.derive(HOST, facts)
    assert fact.subject == DATASET
    return fact.value


def table(*rows: tuple[str, str, str]) -> Known:
    return known(tuple(ROW.format(*row) for row in rows), "mounts")


HERE = table(("/", "ext4", "/dev/sda2"), ("/boot", "zfs", DATASET.name))
ELSEWHERE = table(("/boot", "ext4", DATASET.name), ("/boot/efi", "zfs", DATASET.name), ("/boot", "zfs", "other/boot"))


@pytest.mark.parametrize(
    ("mountpoint", "mounts", "boot"),
    [
        ("/boot", HERE, True),
        ("legacy", HERE, True),
        ("/boot", ELSEWHERE, False),  # a copy of another host's
        ("legacy", ELSEWHERE, False),
        ("/mnt/boot", HERE, False),
        ("none", HERE, False),
        ("/var/lib/pg", unknown("another namespace"), False),
    ],
)
def test_it_takes_property_and_mount(mountpoint: str, mounts: Known | Unknown, boot: bool) -> None:
    found = judged(known(mountpoint, mountpoint), mounts)
    assert isinstance(found, Known)
    assert found.value is boot


@pytest.mark.parametrize("mountpoint", ["/boot", "legacy"])
def test_without_the_table_nothing_is_said(mountpoint: str) -> None:
    assert isinstance(judged(known(mountpoint, mountpoint), unknown("another namespace")), Unknown)


def test_without_the_property_nothing_is_said() -> None:
    assert isinstance(judged(unknown("zfs get failed"), HERE), Unknown)
