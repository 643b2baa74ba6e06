"""Leaves on one physical device: mirrors that are none, and logs that die with the data.

Two leaves share a device when they end at the same whole disk, or at disks that are one device by their names
(``device_names``): namespaces of one NVMe drive, paths of one LUN.
"""

from __future__ import annotations

from collections.abc import Iterator

from auditor.derive.leaf_groups import MOST, Group, Groups, Leaf
from auditor.facts import Evidence, Fact, Facts, Judged, Known, Subject, Unknown, flag, join, unknown, word

SUBJECT = "host"  # each leaf is compared with all others
FACTS = {
    "leaf.shares_disk_with_leg": flag("another leaf of its top-level vdev is on the same physical device"),
    "leaf.shares_disk_with_data": flag(
        "a leaf that holds data (class normal, special or dedup) is on the same physical device"
    ),
    "leaf.disk_neighbours": word("the other leaves on the same physical device, of many the first, or empty"),
}
MORE = unknown("as much is not known of more leaves")


def derive(host: Subject, facts: Facts) -> Iterator[Fact]:
    """All facts of all leaves."""
    groups = Groups(facts)
    for subject in groups.subjects:
        leaf = groups.leaves[subject]
        if isinstance(leaf.disks, Unknown):
            yield from (Fact(subject, name.removeprefix("leaf."), leaf.disks) for name in FACTS)
            continue
        near = groups.all.near(leaf)
        text = ", ".join((*map(str, near[:MOST]), "more")[: len(near)])
        here = ", ".join(sorted(leaf.names.sure))
        seen = Evidence(f"shares {here} with {text}" if near else f"alone on {here}", "lsblk")
        yield Fact(subject, "disk_neighbours", _judged(text, groups.all, leaf, groups, seen))
        legs = groups.legs(leaf)
        yield Fact(subject, "shares_disk_with_leg", _judged(bool(legs.near(leaf)), legs, leaf, groups, seen))
        data = groups.data
        yield Fact(subject, "shares_disk_with_data", _judged(bool(data.near(leaf)), data, leaf, groups, seen))


def _judged(value: bool | str, group: Group, leaf: Leaf, groups: Groups, seen: Evidence) -> Judged:
    """One neighbour of the group that is seen decides; that there is none is known only when nothing is left open."""
    if value:
        return Known(value, (seen,))
    doubts = [*group.left_out(leaf), *(_doubt(leaf, groups.leaves[other]) for other in group.doubtful(leaf))]
    if not doubts:
        return Known(value, (seen,))
    return join([*doubts[:MOST], *([MORE] if len(doubts) > MOST else [])])


def _doubt(leaf: Leaf, other: Leaf) -> Unknown:
    """Why it is not known whether another leaf is on a device of this one."""
    own, its = leaf.names, other.names
    where = [other.disks] if isinstance(other.disks, Unknown) else []
    common = sorted(own.all & its.all)
    blurred = [each.unsure[name] for name in common for each in (own, its) if name in each.unsure]
    return join((*own.nameless, *where, *its.nameless, *blurred))
