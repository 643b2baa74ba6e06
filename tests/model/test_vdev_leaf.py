"""A leaf whose device a virtual machine of this host has open for writing."""

from __future__ import annotations

from typing import Any

import pytest

from auditor.facts import HOST, Unknown, unknown
from auditor.sources.guests import ClosedGuest, Guest, GuestFile
from tests.model.test_model_pools import World, leaf

NAS = "guest nas (process 7)"
ROWS: dict[str, Any] = {"guests": Guest, "guest_files": GuestFile, "open_guests": Guest, "closed_guests": ClosedGuest}


def found(node: object = "sda1", nodes: object = ("sda1",), **given: object) -> object:
    world = World(("mirror-0", "mirror", "normal", ("sda", "sdb")))
    host: dict[str, object] = {"guests": ("7 nas",), "guest_files": (), "open_guests": ("7 nas",)}
    host |= {"closed_guests": (), "generic_guests": ()} | given
    for subject, values in ((HOST, host), (leaf("sda"), {"node": node, "nodes": nodes})):
        for name, value in values.items():
            assert isinstance(value, str | tuple | Unknown)
            if name in ROWS and not isinstance(value, Unknown):
                row = ROWS[name]
                value = tuple(row(*each.split(" ", len(row._fields) - 1)) for each in value)
            world.put(subject, **{name: value})
    return world.get(leaf("sda"), "open_in_guest")


@pytest.mark.parametrize(
    ("opened", "by"),
    [
        ((), ""),
        (("7 w /dev/sda /dev/disk/by-id/nas",), NAS),
        (("7 w /dev/sda1 /dev/sda1",), NAS),
        (("7 w /dev/sda2 /dev/sda2",), ""),  # another partition
        (("7 r /dev/sda /dev/sda",), ""),
        (("7 w /dev/sdc /dev/sda",), ""),  # by what it is, and not by what it is called
        (("7 w 0:51 /srv/a b.img", "7 w /dev/sda /dev/sda"), NAS),
    ],
)
def test_what_it_has_open(opened: tuple[str, ...], by: str) -> None:
    assert found(guest_files=opened) == by


@pytest.mark.parametrize("opened", ["/dev/dm-2", "/dev/dm-0", "/dev/sda3", "/dev/sda"])
def test_all_that_its_device_lies_on_counts(opened: str) -> None:
    way = {"node": "dm-2", "nodes": ("dm-2", "dm-0", "sda3")}
    assert found(guest_files=(f"7 w {opened} /dev/disk",), **way) == NAS
    assert found(guest_files=("7 w /dev/dm-1 /dev/disk",), **way) == ""


def test_who_serves_a_network_block_device_has_it_open() -> None:
    assert found(node="nbd0p1", nodes=("nbd0p1", "nbd0"), guest_files=("7 w /dev/nbd0 /dev/nbd0",)) == ""


def test_what_is_not_seen_is_not_fine() -> None:
    assert found(node=unknown("it has no device")) is None
    assert found(nodes=unknown("/sys/class/block was not read")) is None
    assert found(generic_guests=("7",)) is None
    assert found(generic_guests=("7",), guest_files=("7 w /dev/sda /dev/sda",)) == NAS
    closed = ("8 /proc/8/fd/*: permission denied",)
    assert found(guest_files=unknown("permission denied")) is None
    assert found(closed_guests=closed) is None
    assert found(closed_guests=closed, guest_files=("7 w /dev/sda /dev/sda",)) == NAS
    assert found(guests=unknown("not read")) is None
    assert found(guests=(), guest_files=unknown("no guest")) == ""
