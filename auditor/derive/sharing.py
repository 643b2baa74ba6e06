"""Leaves on one physical device: mirrors that are none, and logs that die with the data.

Two leaves share a device when they end at the same whole disk, at two NVMe namespaces of one drive, or at two disks that
give the same serial number. Virtual disks are told apart by their names and world-wide names alone: a cloud shows all its
volumes as namespaces of one emulated controller with a constant serial number (Google "nvme_card-pd", Azure "SN: 000001"),
so that a common one says nothing of what they lie on. The world-wide names of drives are not used: some give all the same.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from auditor.derive.combine import every, is_true
from auditor.facts import Evidence, Fact, Facts, Judged, Known, Subject, Unknown, flag, join, unknown, word

SUBJECT = "host"  # each leaf is set beside all others
FACTS = {
    "leaf.shares_disk_with_leg": flag("another leaf of its top-level vdev is on the same physical device"),
    "leaf.shares_disk_with_data": flag(
        "a leaf that holds data (class normal, special or dedup) is on the same physical device"
    ),
    "leaf.disk_neighbours": word("the other leaves on the same physical device, or empty"),
}
NEEDS = (
    "leaf.disks",
    "leaf.vdev",
    "leaf.allocation_class",
    "pool.leaves",
    "disk.serial",
    "disk.sysfs_subsystem_nqn",
    "disk.virtual",
    "disk.wwn",
)
COMPOSED = "nvme."  # the kernel makes it of serial number, model and namespace where the namespace has no name
UNSEEN = "what they lie on is not seen from here"
DATA = ("normal", "special", "dedup")


def derive(host: Subject, facts: Facts) -> Iterator[Fact]:
    """All facts of all leaves."""
    leaves, pools = list(facts.subjects("leaf")), list(facts.subjects("pool"))
    holes = {pool.name: why for pool in pools if isinstance(why := facts.get(pool, "leaves"), Unknown)}
    everywhere = dict.fromkeys(other for pool in pools for other in facts.linked(pool, "leaves"))
    devices = {leaf: _devices(facts.linked(leaf, "disks"), facts) for leaf in (*leaves, *everywhere)}
    on: dict[str, set[Subject]] = defaultdict(set)
    alike: dict[str, set[Subject]] = defaultdict(set)
    for other in everywhere:
        for device in devices[other].sure:
            on[device].add(other)
        for name in devices[other].all:
            alike[name].add(other)
    blurred = dict.fromkeys(leaf for leaf in devices if isinstance(_whole(leaf, facts), Unknown))
    for leaf in leaves:
        mine = facts.get(leaf, "disks")
        if isinstance(mine, Unknown):
            yield from (Fact(leaf, name.removeprefix("leaf."), mine) for name in FACTS)
            continue
        own = devices[leaf]
        around = {other for device in own.sure for other in on[device] if other != leaf}
        maybe: dict[Subject, list[Unknown]] = defaultdict(list)
        for name in sorted(own.all):
            for other in alike[name] - around - {leaf}:
                maybe[other] += _blurred(name, own, devices[other])
        # only what is not wholly known of a leaf can leave something open; most are
        unsure = {
            other: join(maybe[other]) if other in maybe else facts.get(other, "disks")
            for other in everywhere
            if other != leaf and (other in blurred or leaf in blurred or other in maybe)
        }
        near = [other for other in everywhere if other in around]
        yield from _leaf(leaf, sorted(own.sure), near, unsure, holes, facts)


def _whole(leaf: Subject, facts: Facts) -> list[Known] | Unknown:
    return every(facts.get(leaf, name) for name in ("disks", "vdev", "allocation_class"))


def _leaf(
    leaf: Subject,
    here: list[str],
    near: list[Subject],
    unsure: Mapping[Subject, Judged],
    holes: Mapping[str, Unknown],
    facts: Facts,
) -> Iterator[Fact]:
    """One neighbour that is seen decides; without one, every other leaf must have been followed to its disk."""
    names = ", ".join(map(str, near))
    seen = Evidence(f"shares {', '.join(here)} with {names}" if near else f"alone on {', '.join(here)}", "lsblk")
    asked = dict.fromkeys((*near, *unsure))
    everywhere: dict[Subject, Judged] = {other: Known(True, ()) for other in asked}
    legs = {other: _is_leg(leaf, other, facts) for other in asked}
    data = {other: _is_data(other, facts) for other in asked}
    anywhere = list(holes.values())
    in_its_pool = [holes[leaf.within]] if leaf.within in holes else []  # no leg of its vdev is in another one
    yield Fact(leaf, "disk_neighbours", _judged(names, near, everywhere, anywhere, unsure, seen))
    for name, group, unlisted in (
        ("shares_disk_with_leg", legs, in_its_pool),
        ("shares_disk_with_data", data, anywhere),
    ):
        members = [other for other in near if is_true(group[other])]
        yield Fact(leaf, name, _judged(bool(members), members, group, unlisted, unsure, seen))


def _judged(
    value: bool | str,
    near: list[Subject],
    group: Mapping[Subject, Judged],
    holes: list[Unknown],
    unsure: Mapping[Subject, Judged],
    seen: Evidence,
) -> Judged:
    """One neighbour that is surely of the group decides; none is known to be none only when nothing is left open."""
    if near:
        return Known(value, (seen,))
    asked: list[Judged] = [*holes]
    for other, member in group.items():
        if isinstance(member, Unknown):
            asked.append(member)
        elif member.value is True and other in unsure:
            asked.append(unsure[other])
    followed = every(asked)
    return followed if isinstance(followed, Unknown) else Known(value, (seen,))


class Names(NamedTuple):
    """What identifies the devices of a leaf. sure: one name, one device. unsure: name -> why it may stand for several."""

    sure: frozenset[str]
    unsure: Mapping[str, Unknown]

    @property
    def all(self) -> set[str]:
        return {*self.sure, *self.unsure}


def _devices(disks: tuple[Subject, ...], facts: Facts) -> Names:
    """Every name that is known of the physical device behind each disk."""
    sure: set[str] = set()
    unsure: dict[str, Unknown] = {}
    for disk in disks:
        sure.add(disk.name)
        virtual = facts.get(disk, "virtual")
        given = [found for name in ("sysfs_subsystem_nqn", "serial") if (found := _given(disk, name, facts))]
        if isinstance(virtual, Known) and virtual.value is False:
            sure.update(given)
            continue
        for name in given:
            several = unknown(
                f"several disks, virtual or perhaps so, give {name} as NVMe subsystem or serial number: {UNSEEN}"
            )
            unsure[name] = several if isinstance(virtual, Known) else join([several, virtual])
        if is_true(virtual) and not (wwn := _given(disk, "wwn", facts)).startswith(COMPOSED):
            sure.update([wwn] if wwn else [])
    return Names(frozenset(sure), unsure)


def _given(disk: Subject, name: str, facts: Facts) -> str:
    """What a disk says of itself; empty where it says nothing, or nothing but zeros."""
    match facts.get(disk, name):
        case Known(str(value)) if value.rpartition(".")[2].removeprefix("0x").strip("0 "):
            return value
    return ""


def _blurred(name: str, *of: Names) -> list[Unknown]:
    """Why a name that two leaves have in common does not tell whether they are on one device."""
    return [each.unsure[name] for each in of if name in each.unsure]


def _is_leg(leaf: Subject, other: Subject, facts: Facts) -> Judged:
    """Whether both are in one top-level vdev."""
    if leaf.within != other.within:
        return Known(False, ())
    both = every(facts.get(each, "vdev") for each in (leaf, other))
    return both if isinstance(both, Unknown) else Known(both[0].value == both[1].value, ())


def _is_data(leaf: Subject, facts: Facts) -> Judged:
    found = facts.get(leaf, "allocation_class")
    return found if isinstance(found, Unknown) else Known(found.value in DATA, ())
