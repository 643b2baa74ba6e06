"""All leaves of a host, grouped once by what a leaf is compared with: its top-level vdev, those that hold data, all.

A question about one leaf is answered by the first MOST others that matter, so that the work for all leaves grows as
their number does, also where no drive gives a serial number.
"""

from __future__ import annotations

from collections import defaultdict
from heapq import merge
from itertools import islice

from auditor.derive.device_names import Names, names
from auditor.facts import DATA, Facts, Subject, Unknown, Value

MOST = 16  # others that one leaf names
Place = tuple[int, Subject]  # a leaf and its number among all, by which lists of leaves are merged
Perhaps = tuple[Subject | None, Unknown]  # one (None: of those that were not listed) that may be of a kind, and why


class Leaf:
    """A leaf with what is known of where it lies."""

    def __init__(self, subject: Subject, facts: Facts) -> None:
        self.subject = subject
        self.disks, self.vdev, self.kind = (facts.get(subject, name) for name in ("disks", "vdev", "allocation_class"))
        self.names: Names = names(facts.linked(subject, "disks"), facts)


class Group:
    """Leaves of one kind. on, alike: by the names of their devices that are sure, and by all names. open: those that may be
    on any device. perhaps: others that may be of this kind."""

    def __init__(self, perhaps: list[Perhaps]) -> None:
        self.perhaps = perhaps
        self.all: list[Place] = []
        self.open: list[Place] = []
        self.on: dict[str, list[Place]] = defaultdict(list)
        self.alike: dict[str, list[Place]] = defaultdict(list)

    def add(self, place: Place, leaf: Leaf) -> None:
        self.all.append(place)
        if leaf.names.nameless or isinstance(leaf.disks, Unknown):
            self.open.append(place)
        for name in leaf.names.sure:
            self.on[name].append(place)
        for name in leaf.names.all:
            self.alike[name].append(place)

    def near(self, leaf: Leaf) -> list[Subject]:
        """The first others on a device of this leaf, and one more than are named."""
        return _first([self.on[name] for name in leaf.names.sure if name in self.on], leaf)

    def doubtful(self, leaf: Leaf) -> list[Subject]:
        """The first others that may be on a device of this leaf, and one more than are named."""
        alike = [self.alike[name] for name in leaf.names.all if name in self.alike]
        return _first([self.all if leaf.names.nameless else self.open, *alike], leaf)

    def left_out(self, leaf: Leaf) -> list[Unknown]:
        """Why others may be of this kind, of the first and of one more than are named."""
        return list(islice((why for other, why in self.perhaps if other != leaf.subject), MOST + 1))


def _first(lists: list[list[Place]], leaf: Leaf) -> list[Subject]:
    found: dict[Subject, None] = {}
    for _, other in merge(*lists):
        if other != leaf.subject:
            found[other] = None
        if len(found) > MOST:
            break
    return list(found)


class Groups:
    """subjects: the leaves that are asked about. all, data: groups of the whole host."""

    def __init__(self, facts: Facts) -> None:
        pools = list(facts.subjects("pool"))
        holes = {pool.name: why for pool in pools if isinstance(why := facts.get(pool, "leaves"), Unknown)}
        listed = dict.fromkeys(leaf for pool in pools for leaf in facts.linked(pool, "leaves"))
        self.subjects = list(facts.subjects("leaf"))
        self.leaves = {each: Leaf(each, facts) for each in (*self.subjects, *listed)}
        self.all, self.data = (Group([(None, why) for why in holes.values()]) for _ in range(2))
        self._pools: dict[str, Group] = defaultdict(lambda: Group([]))  # the legs of a vdev are in its pool
        self._pools.update({within: Group([(None, why)]) for within, why in holes.items()})
        self._legs: dict[tuple[str, Value], Group] = {}
        for place in enumerate(listed):
            self._sort(place, self.leaves[place[1]])

    def _sort(self, place: Place, leaf: Leaf) -> None:
        pool = self._pools[leaf.subject.within]
        for group in (self.all, pool):
            group.add(place, leaf)
        if isinstance(leaf.kind, Unknown):
            self.data.perhaps.append((leaf.subject, leaf.kind))
        elif leaf.kind.value in DATA:
            self.data.add(place, leaf)
        if isinstance(leaf.vdev, Unknown):
            pool.perhaps.append((leaf.subject, leaf.vdev))
        else:
            self._vdev(leaf, leaf.vdev.value).add(place, leaf)

    def _vdev(self, leaf: Leaf, vdev: Value) -> Group:
        within = leaf.subject.within
        return self._legs.setdefault((within, vdev), Group(self._pools[within].perhaps))

    def legs(self, leaf: Leaf) -> Group:
        """The legs of its top-level vdev; where that is not known any leaf of the pool may be one."""
        if not isinstance(leaf.vdev, Unknown):
            return self._vdev(leaf, leaf.vdev.value)
        pool = self._pools[leaf.subject.within]
        mine: list[Perhaps] = [(None, leaf.vdev)] if any(other != leaf.subject for _, other in pool.all[:2]) else []
        return Group([*mine, *pool.perhaps[: MOST + 2]])
