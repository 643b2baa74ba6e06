"""A leaf whose device a virtual machine of this host has open for writing."""

from __future__ import annotations

import pytest

from auditor.facts import HOST, Unknown, unknown
from tests.derive.test_pool_facts import World, leaf

NAMES = ("/dev/disk/by-id/nas-part1=sda1",)
NAS = "guest nas (process 7)"


def found(**given: object) -> object:
    world = World(("mirror-0", "mirror", "normal", ("sda", "sdb")))
    said: dict[str, object] = {"guests": ("7 nas",), "guest_files": (), "open_guests": ("7 nas",), "closed_guests": ()}
    for name, value in (said | {"labelled_paths": NAMES} | given).items():
        assert isinstance(value, tuple | Unknown)
        world.put(HOST, **{name: value})
    world.put(leaf("sda"), path="/dev/disk/by-id/nas-part1")
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


def test_what_is_not_seen_is_not_fine() -> None:
    closed = ("8 /proc/8/fd/*: permission denied",)
    assert found(guest_files=unknown("permission denied")) is None
    assert found(closed_guests=closed) is None
    assert found(closed_guests=closed, guest_files=("7 w /dev/sda /dev/sda",)) == NAS
    assert found(guests=unknown("not read")) is None
    assert found(guests=(), guest_files=unknown("no guest")) == ""
