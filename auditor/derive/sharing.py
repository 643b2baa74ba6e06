"""Leaves on one physical device: mirrors that are none, and logs that die with the data.

Two leaves share a device when they end at the same whole disk, at two NVMe namespaces of one subsystem, or at two disks
that give the same serial number (paths of one LUN).
"""

from __future__ import annotations

from collections.abc import Iterator

from auditor.derive.combine import every
from auditor.facts import Evidence, Fact, Facts, Judged, Known, Subject, Unknown, flag, word

SUBJECT = "leaf"
FACTS = {
    "shares_disk_with_leg": flag("another leaf of its top-level vdev is on the same physical device"),
    "shares_disk_with_data": flag(
        "a leaf that holds data (class normal, special or dedup) is on the same physical device"
    ),
    "disk_neighbours": word("the other leaves on the same physical device, or empty"),
}
NEEDS = ("leaf.disks", "leaf.vdev", "leaf.allocation_class", "pool.leaves", "disk.serial", "disk.sysfs_subsystem_nqn")
DATA = ("normal", "special", "dedup")


def derive(leaf: Subject, facts: Facts) -> Iterator[Fact]:
    """All facts. One neighbour that is seen decides; without one, every other leaf must have been followed to its disk."""
    mine = facts.get(leaf, "disks")
    if isinstance(mine, Unknown):
        yield from (Fact(leaf, name, mine) for name in FACTS)
        return
    here = _devices(facts.linked(leaf, "disks"), facts)
    others = [other for pool in facts.subjects("pool") for other in facts.linked(pool, "leaves") if other != leaf]
    near = [other for other in others if here & _devices(facts.linked(other, "disks"), facts)]
    legs = [other for other in others if _same(leaf, other, facts)]
    data = [other for other in others if _class(other, facts) in DATA]
    text = f"shares {', '.join(sorted(here))} with " if near else ""
    seen = Evidence(text + ", ".join(map(str, near)) if near else f"alone on {', '.join(sorted(here))}", "lsblk")
    yield Fact(leaf, "disk_neighbours", _judged(", ".join(map(str, near)), near, others, facts, seen))
    for name, group in (("shares_disk_with_leg", legs), ("shares_disk_with_data", data)):
        yield Fact(
            leaf, name, _judged(bool(set(near) & set(group)), [e for e in near if e in group], group, facts, seen)
        )


def _judged(value: bool | str, near: list[Subject], group: list[Subject], facts: Facts, seen: Evidence) -> Judged:
    if near:
        return Known(value, (seen,))
    followed = every(facts.get(other, "disks") for other in group)
    return followed if isinstance(followed, Unknown) else Known(value, (seen,))


def _devices(disks: tuple[Subject, ...], facts: Facts) -> set[str]:
    """What identifies the physical device behind each disk: every name that is known of it."""
    found = set()
    for disk in disks:
        found.add(disk.name)
        for name in ("sysfs_subsystem_nqn", "serial"):
            match facts.get(disk, name):
                case Known(str(value)) if value and value.strip("0 "):
                    found.add(value)
    return found


def _same(leaf: Subject, other: Subject, facts: Facts) -> bool:
    return bool(facts.linked(leaf, "vdev")) and facts.linked(leaf, "vdev") == facts.linked(other, "vdev")


def _class(leaf: Subject, facts: Facts) -> str:
    found = facts.get(leaf, "allocation_class")
    return str(found.value) if isinstance(found, Known) else ""
