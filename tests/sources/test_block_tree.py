"""The links from leaves to disks where there is nothing to link: the reason must say what is missing."""

from __future__ import annotations

import pytest

from auditor.facts import HOST, Fact, Facts, Judged, Known, Subject, Unknown, Value, known, unknown
from auditor.host.request import Run
from auditor.sources import block_devices, block_tree
from auditor.sources.block_devices import DeviceName

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
    found = {fact.name: fact.value for fact in block_tree.links(facts, Facts())}
    assert set(found) >= {"disks"}
    for value in found.values():
        assert isinstance(value, Unknown)
        assert [reason.text for reason in value.reasons] == [why]


def test_a_distributed_spare_is_no_missing_device() -> None:
    """OpenZFS gives it a path that is none: its name (vdev_draid.c vdev_draid_spare_create())."""
    facts = Facts()
    for name, value in (("type", "dspare"), ("path", "draid1-0-0")):
        facts.put(Fact(LEAF, name, known(value, value, "zpool status -p tank")))
    found = {fact.name: fact.value for fact in block_tree.links(facts, Facts())}
    assert isinstance(found["device_present"], Unknown)
    assert "spread over" in found["disks"].reasons[0].text  # type: ignore[union-attr]


def test_a_stacked_device_that_names_nothing_below_it_is_not_taken_for_a_disk() -> None:
    facts, inventory = Facts(), Facts()
    facts.put(Fact(LEAF, "type", known("disk", "")))
    facts.put(Fact(LEAF, "path", known("/dev/dm-3", "")))
    inventory.put(Fact(Subject("disk", "dm-3"), "transport", known("dm", "")))
    disks = {fact.name: fact.value for fact in block_tree.links(facts, inventory)}["disks"]
    assert isinstance(disks, Unknown)
    assert [reason.text for reason in disks.reasons] == [
        "/sys/class/block/dm-3/slaves: does not say what dm-3 is made of"
    ]


def behind(top: str, **devices: dict[str, Value | Judged]) -> dict[str, Judged]:
    """The facts of a leaf on /dev/TOP; "dm_0" is dm-0. A device without slaves is a disk."""
    facts, inventory = Facts(), Facts()
    facts.put(Fact(LEAF, "type", known("disk", "")))
    facts.put(Fact(LEAF, "path", known(f"/dev/{top}", "")))
    for name, own in devices.items():
        disk = Subject("disk", name.replace("_", "-"))
        seen: dict[str, Value | Judged] = {"slaves": (), "transport": "sata"}
        for fact, value in (seen | own).items():
            inventory.put(Fact(disk, fact, value if isinstance(value, Known | Unknown) else known(value, fact)))
    return {fact.name: fact.value for fact in block_tree.links(facts, inventory)}


def md(level: str, *slaves: str, md_degraded: int | Unknown = 0) -> dict[str, Value | Judged]:
    return {"transport": "md", "md_level": level, "slaves": slaves, "md_degraded": md_degraded}


def dm(targets: tuple[str, ...] | Unknown, *slaves: str) -> dict[str, Value | Judged]:
    return {"transport": "dm", "dm_targets": targets, "slaves": slaves}


TWO: dict[str, dict[str, Value | Judged]] = {"sda": {"partitions": ("sda1", "sda2")}, "sdb": {}}


@pytest.mark.parametrize(
    ("redundant", "devices"),
    [
        (False, {"top": {}}),
        (True, {"top": md("raid1", "sda", "sdb")}),
        (None, {"top": md("raid1", "sda", "sdb", md_degraded=unknown("not read"))}),
        (False, {"top": md("raid1", "sda", "sdb", md_degraded=1)}),
        (False, {"top": md("raid1", "sda")}),
        (False, {"top": md("raid1", "sda1", "sda2")}),
        (False, {"top": md("raid5", "sda1", "sda2", "sdb")}),
        (False, {"top": md("raid0", "sda", "sdb")}),
        (False, {"top": md("linear", "sda", "sdb")}),
        (True, {"top": dm(("crypt",), "md0"), "md0": md("raid10", "sda", "sdb")}),
        (True, {"top": dm(unknown("needs root"), "md0"), "md0": md("raid10", "sda", "sdb")}),
        (False, {"top": dm(("linear",), "md0", "sdc"), "md0": md("raid1", "sda", "sdb"), "sdc": {}}),
        (True, {"top": dm(("raid-raid1",), "sda", "sdb")}),
        (True, {"top": dm(("raid-raid6_zr",), "sda", "sdb")}),
        (True, {"top": dm(("mirror",), "sda", "sdb")}),
        (False, {"top": dm(("raid-raid0",), "sda", "sdb")}),
        (False, {"top": dm(("raid-raid1", "linear"), "sda", "sdb")}),
        (False, {"top": dm(("raid-raid1",), "sda1", "sda2")}),
        (False, {"top": dm(("multipath",), "sda", "sdb")}),
        (None, {"top": dm(unknown("needs root"), "sda", "sdb")}),
        (None, {"top": dm(("crypt",), "dm-2"), "dm_2": dm(unknown("needs root"), "sda")}),
        (False, {"top": dm(("linear",), "dm-2", "sdb"), "dm_2": dm(unknown("needs root"), "sda")}),
        (None, {"top": {"transport": "md", "slaves": ("sda", "sdb"), "md_level": unknown("not read")}}),
    ],
)
def test_raid_of_the_kernel_survives_the_death_of_one_disk(
    redundant: bool | None, devices: dict[str, dict[str, Value | Judged]]
) -> None:
    name = "dm-1" if devices["top"].get("transport") == "dm" else "md1"
    renamed = {name.replace("-", "_") if each == "top" else each: own for each, own in devices.items()}
    found = behind(name, **TWO, **renamed)["redundant_below"]
    assert (found.value if isinstance(found, Known) else None) is redundant


@pytest.mark.parametrize(
    ("mode", "state", "layer"),
    [
        ("writethrough", "clean", "bcache-writethrough"),
        ("writearound", "clean", "bcache-writearound"),
        ("writethrough", "dirty", "bcache"),
        ("writethrough", unknown("not read"), "bcache"),
        ("writeback", "clean", "bcache-writeback"),
        ("writeback", "dirty", "bcache-writeback"),
        ("writeback", "no cache", "bcache-none"),
        (unknown("not read"), "clean", "bcache"),
    ],
)
def test_how_bcache_writes(mode: str | Unknown, state: str | Unknown, layer: str) -> None:
    own: dict[str, Value | Judged] = {
        "transport": "bcache",
        "slaves": ("sda",),
        "bcache_mode": mode,
        "bcache_state": state,
    }
    layers = behind("bcache0", sda={}, bcache0=own)["layers"]
    assert isinstance(layers, Known)
    assert layers.value == (layer,)


@pytest.mark.parametrize(
    ("own", "uuid", "below", "raises"),
    [
        (512, "CRYPT-LUKS2-1", 512, False),
        (4096, "CRYPT-LUKS2-1", 512, True),
        (4096, "CRYPT-PLAIN-1", 512, True),
        (4096, "CRYPT-LUKS1-1", 4096, False),
        (4096, "CRYPT-LUKS2-1", 4096, None),
        (4096, "CRYPT-LUKS2-1", unknown("not read"), None),
        (unknown("not read"), "CRYPT-LUKS2-1", 512, None),
        (4096, "LVM-1", 512, False),
    ],
)
def test_whose_blocks_dm_crypt_makes_larger(
    own: int | Unknown, uuid: str, below: int | Unknown, raises: bool | None
) -> None:
    crypt: dict[str, Value | Judged] = {"logical_block_bytes": own, "dm_uuid": uuid}
    found = behind("dm-0", dm_0={**dm(("crypt",), "sda"), **crypt}, sda={"logical_block_bytes": below})
    value = found["crypt_raises_blocks"]
    assert (value.value if isinstance(value, Known) else None) is raises


def test_device_mapper_is_asked_only_where_a_device_is_seen() -> None:
    """dmsetup would load the kernel module and make /dev/mapper/control, where there was none."""
    for links, asked in (
        (known((DeviceName("/dev/mapper/vg-a", "dm-0"),), ""), True),
        (known((DeviceName("/dev/disk/by-id/a=dm-0", "sda"),), ""), False),
        (unknown("no link in /dev/disk or /dev/mapper"), False),
    ):
        facts = Facts()
        facts.put(Fact(HOST, "dev_links", links))
        assert isinstance(block_devices.dmsetup.request(HOST, facts), Run) is asked
