"""Leaves on one physical device: mirrors that are none, and logs that die with the data.

Two leaves share a device when they end at the same whole disk, or at disks that are one device by their names
(``device_names``): namespaces of one NVMe drive, paths of one LUN.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

from auditor.derive.combine import every, is_true
from auditor.derive.device_names import NAMED_BY, Names, names
from auditor.facts import Evidence, Fact, Facts, Judged, Known, Subject, Unknown, flag, join, word

SUBJECT = "host"  # each leaf is set beside all others
FACTS = {
    "leaf.shares_disk_with_leg": flag("another leaf of its top-level vdev is on the same physical device"),
    "leaf.shares_disk_with_data": flag(
        "a leaf that holds data (class normal, special or dedup) is on the same physical device"
    ),
    "leaf.disk_neighbours": word("the other leaves on the same physical device, or empty"),
}
NEEDS = ("leaf.disks", "leaf.vdev", "leaf.allocation_class", "pool.leaves", *NAMED_BY)
DATA = ("normal", "special", "dedup")


def derive(host: Subject, facts: Facts) -> Iterator[Fact]:
    """All facts of all leaves."""
    leaves, pools = list(facts.subjects("leaf")), list(facts.subjects("pool"))
    holes = {pool.name: why for pool in pools if isinstance(why := facts.get(pool, "leaves"), Unknown)}
    everywhere = dict.fromkeys(other for pool in pools for other in facts.linked(pool, "leaves"))
    devices = {leaf: names(facts.linked(leaf, "disks"), facts) for leaf in (*leaves, *everywhere)}
    on: dict[str, set[Subject]] = defaultdict(set)
    alike: dict[str, set[Subject]] = defaultdict(set)
    for other in everywhere:
        for device in devices[other].sure:
            on[device].add(other)
        for name in devices[other].all:
            alike[name].add(other)
    # what is not wholly known of a leaf can leave something open of any other; most are
    place = {other: i for i, other in enumerate(everywhere)}
    blurred = [other for other in everywhere if isinstance(_whole(other, facts), Unknown)]
    nameless = [other for other in everywhere if devices[other].nameless]
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
        for other in everywhere if own.nameless else nameless:
            if other != leaf and other not in around:
                maybe[other] += (*own.nameless, *devices[other].nameless)
        unclear = everywhere if isinstance(_whole(leaf, facts), Unknown) else {*blurred, *maybe}
        unsure = {
            other: join(maybe[other]) if other in maybe else facts.get(other, "disks")
            for other in sorted(unclear, key=place.__getitem__)
            if other != leaf
        }
        near = sorted(around, key=place.__getitem__)
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
    neighbours = ", ".join(map(str, near))
    seen = Evidence(f"shares {', '.join(here)} with {neighbours}" if near else f"alone on {', '.join(here)}", "lsblk")
    asked = dict.fromkeys((*near, *unsure))
    everywhere: dict[Subject, Judged] = {other: Known(True, ()) for other in asked}
    legs = {other: _is_leg(leaf, other, facts) for other in asked}
    data = {other: _is_data(other, facts) for other in asked}
    anywhere = list(holes.values())
    in_its_pool = [holes[leaf.within]] if leaf.within in holes else []  # no leg of its vdev is in another one
    yield Fact(leaf, "disk_neighbours", _judged(neighbours, near, everywhere, anywhere, unsure, seen))
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
