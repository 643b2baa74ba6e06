"""Which labels are of pools that are missed, and which of pools that are there, of devices in use, and of guests."""

from __future__ import annotations

import pytest

from auditor.facts import HOST, Fact, Facts, Known, Subject, Value, known, unknown
from auditor.model.pool import pools_not_imported
from auditor.sources.block_devices import DeviceName
from auditor.sources.guests import Guest, GuestFile
from auditor.sources.udev import Label

TANK, LEAF = Subject("pool", "tank"), Subject("leaf", "sda1", "tank")
SDA = "1 sda1 sda tank"
OLD = "2 sdb1 sdb old"
MISSED = ("old (GUID 2) on sdb1",)


PATHS = tuple(
    DeviceName(*each) for each in (("/dev/disk/by-id/b-part1", "sdb1"), ("/dev/sdb1", "sdb1"), ("/dev/sda1", "sda1"))
)
VM = Guest("7", "vm")


def missed(
    *labels: str,
    lost: str = "",
    pools: tuple[Subject, ...] = (TANK,),
    fact: str = "pools_not_imported",
    guests: tuple[Guest, ...] = (),
    guest_files: tuple[GuestFile, ...] = (),
    **given: Value,
) -> object:
    """The pools, or why they are not known."""
    facts = Facts()
    values: list[tuple[Subject, str, Value]] = [
        (HOST, "zfs_labels", tuple(Label(*each.split(" ", 3)) for each in labels)),
        (HOST, "labelled_paths", PATHS),
        (HOST, "imported_pools", pools),
        (HOST, "guests", guests),
        (HOST, "guest_files", guest_files),
        *((pool, "list_guid", "1") for pool in pools),
        (LEAF, "path", given.get("path", "/dev/sda1")),
        (LEAF, "state", given.get("state", "ONLINE")),
        (LEAF, "type", given.get("type", "disk")),
    ]
    for subject, name, value in values:
        facts.put(Fact(subject, name, unknown("lost") if name == lost else known(value, name)))
    found = {each.name: each.value for each in pools_not_imported.derive(HOST, facts)}[fact]
    return found.value if isinstance(found, Known) else found.reasons[0].text


@pytest.mark.parametrize(
    ("found", "says"),
    [
        (missed(), ()),
        (missed(SDA), ()),
        (missed("1 sdc1 sdc tank"), ()),  # an old leg
        (missed("1 sdc1 sdc another name"), ()),  # of before it was renamed
        (missed(SDA, OLD), MISSED),
        (missed("2 sdc1 sdc tank"), ()),  # of which the other fact tells
        (missed(SDA, "2 sda sda old"), ("old (GUID 2) on sda",)),  # left over beside a partition in use
        (missed("2 sdc1 sdc old", OLD), ("old (GUID 2) on sdb1, sdc1",)),
        (missed(OLD, pools=()), MISSED),  # nothing is imported
        # what udev knows of a leaf can be of before its pool was made
        (missed(OLD, path="/dev/disk/by-id/b-part1"), ()),
        (missed(OLD, path="/dev/disk/by-id/b-part1", state="UNAVAIL"), MISSED),
        (missed(OLD, path="/dev/disk/by-id/b-part1", state="AVAIL"), ()),  # a hot spare
        # guests: what one has open, and not what one says
        (missed(OLD, guests=(VM,), guest_files=(GuestFile("7", "w", "/dev/sdb", "/dev/disk"),)), ()),
        (missed(OLD, guests=(VM,), guest_files=(GuestFile("7", "w", "/dev/sdb1", "/dev/disk"),)), ()),
        (missed(OLD, guests=(VM,), guest_files=(GuestFile("7", "w", "/dev/sdc", "/dev/disk"),)), MISSED),
        (missed(OLD, guests=(VM,), lost="guest_files"), "lost"),
        (missed(OLD, lost="guest_files"), MISSED),  # there is no guest
        (missed(SDA, guests=(VM,), lost="guest_files"), ()),
        (missed(OLD, lost="list_guid"), "lost"),
        (missed(OLD, lost="path"), "lost"),
        (missed(OLD, lost="path", type="file"), MISSED),
        (missed(SDA, lost="path"), ()),
        (missed(OLD, lost="zfs_labels"), "lost"),
        (missed(OLD, lost="imported_pools"), "lost"),
    ],
)
def test_missed(found: object, says: object) -> None:
    assert found == says


@pytest.mark.parametrize(
    ("found", "says"),
    [
        (missed(SDA, OLD, fact="pool_names_twice"), ()),
        (missed("1 sdc1 sdc tank", fact="pool_names_twice"), ()),  # an old leg
        (missed(SDA, OLD, "2 sdc1 sdc tank", fact="pool_names_twice"), ("tank (GUID 2) on sdc1",)),
        (missed("2 sda sda tank", fact="pool_names_twice"), ("tank (GUID 2) on sda",)),
        (missed("2 sdc1 sdc tank", pools=(), fact="pool_names_twice"), ()),
        (missed("2 sdc1 sdc tank", lost="path", fact="pool_names_twice"), "lost"),
        # a guest's drive: it does not run yet when the pool is imported the next time
        (
            missed(
                "2 sdc1 sdc tank",
                guests=(VM,),
                guest_files=(GuestFile("7", "w", "/dev/sdc", "/dev/d"),),
                fact="pool_names_twice",
            ),
            ("tank (GUID 2) on sdc1",),
        ),
        (
            missed("2 sdc1 sdc tank", guests=(VM,), lost="guest_files", fact="pool_names_twice"),
            ("tank (GUID 2) on sdc1",),
        ),
        (
            missed("2 sdc1 sdc my_pool", pools=(Subject("pool", "my pool"),), fact="pool_names_twice"),
            ("my_pool (GUID 2) on sdc1",),
        ),
        (missed(OLD, lost="path", fact="pool_names_twice"), ()),
        (missed(OLD, lost="zfs_labels", fact="pool_names_twice"), "lost"),
    ],
)
def test_called_like_one_that_is_imported(found: object, says: object) -> None:
    assert found == says
