"""The links from leaves to disks where there is nothing to link: the reason must say what is missing."""

from __future__ import annotations

import pytest

from auditor.collect import blocks
from auditor.facts import Fact, Facts, Subject, Unknown, known

LEAF = Subject("leaf", "14412502418488260279", "tank")
WAS = "was /dev/disk/by-id/nvme-A-part1"


@pytest.mark.parametrize(
    ("note", "why"),
    [
        (WAS, f"zpool status -p tank: {LEAF.name} has no device; it {WAS}, where another one may be now"),
        (
            f"{WAS}  corrupted data",
            f"zpool status -p tank: {LEAF.name} has no device; it {WAS}, where another one may be now",
        ),
        ("(resilvering)", f"leaf {LEAF}: path was not looked at"),
    ],
)
def test_a_missing_device_is_named_by_where_it_was(note: str, why: str) -> None:
    facts = Facts()
    facts.put(Fact(LEAF, "note", known(note, note, "zpool status -p tank")))
    found = {fact.name: fact.value for fact in blocks.links(facts, Facts())}
    assert set(found) >= {"disks"}
    for value in found.values():
        assert isinstance(value, Unknown)
        assert [reason.text for reason in value.reasons] == [why]


def test_a_stacked_device_that_names_nothing_below_it_is_not_taken_for_a_disk() -> None:
    facts, inventory = Facts(), Facts()
    facts.put(Fact(LEAF, "type", known("disk", "")))
    facts.put(Fact(LEAF, "path", known("/dev/dm-3", "")))
    inventory.put(Fact(Subject("disk", "dm-3"), "transport", known("dm", "")))
    disks = {fact.name: fact.value for fact in blocks.links(facts, inventory)}["disks"]
    assert isinstance(disks, Unknown)
    assert [reason.text for reason in disks.reasons] == [
        "/sys/class/block/dm-3/slaves: does not say what dm-3 is made of"
    ]
