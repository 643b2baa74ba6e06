"""The kind of mount point."""

from __future__ import annotations

import pytest

from auditor.derive import mounting
from auditor.facts import Fact, Facts, Known, Subject, known, unknown

DATASET = Subject("dataset", "tank/db")


@pytest.mark.parametrize(
    ("point", "kind", "boot"),
    [
        ("/", "root", False),
        ("legacy", "legacy", False),
        ("none", "none", False),
        ("/var/lib/pg", "path", False),
        ("/none", "path", False),
        ("/a\tb", "path", False),
        ("/boot", "path", True),
        ("/boot/grub", "path", False),
        ("/mnt/boot", "path", False),
    ],
)
def test_kinds(point: str, kind: str, boot: bool) -> None:
    facts = Facts()
    facts.put(Fact(DATASET, "mountpoint", known(point, f"mountpoint={point}")))
    found = {fact.name: fact.value for fact in mounting.derive(DATASET, facts)}
    assert {name: value.value for name, value in found.items() if isinstance(value, Known)} == {
        "mounts_at": kind,
        "at_boot": boot,
    }
    for value in found.values():
        assert isinstance(value, Known)
        assert value.evidence[0].command == "zfs get mountpoint {subject}"


def test_what_was_not_read_stays_a_hole() -> None:
    facts = Facts()
    facts.put(Fact(DATASET, "mountpoint", unknown("zfs get failed")))
    found = {fact.name: fact.value for fact in mounting.derive(DATASET, facts)}
    assert found == dict.fromkeys(("mounts_at", "at_boot"), unknown("zfs get failed"))
