"""What a leaf (a device of a pool) lies on: disks that it shares with others, virtual machines that have it open, RAID
below it; and how its pool's resilver gets on."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from heapq import merge
from itertools import islice

from auditor.facts import (
    DATA,
    HOST,
    ClosedGuest,
    Evidence,
    Fact,
    Facts,
    Guest,
    GuestFile,
    Judged,
    Known,
    Spec,
    Subject,
    Unknown,
    Value,
    is_true,
    join,
    unknown,
)
from auditor.model.derivation import (
    about,
    about_each,
    catch_missing,
    derivation,
    every,
    evidence,
    gaps,
    linked,
    need,
    values,
)
from auditor.model.disk import Names, names
from auditor.text import harmless

# -- neighbours -----------------------------------------------------------------------------------------------------
#
# All leaves of a host, grouped once by what a leaf is compared with: its top-level vdev, those that hold data, all.
#
# A question about one leaf is answered by the first MOST others that matter, so that the work for all leaves grows as their
# number does, also where no drive gives a serial number.

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

    def doubts(self, leaf: Leaf) -> list[Subject]:
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


MORE = unknown("as much is not known of more leaves")


@derivation(
    "host",
    **{
        "leaf.shares_disk_with_leg": Spec.flag("another leaf of its top-level vdev is on the same physical device"),
        "leaf.shares_disk_with_data": Spec.flag(
            "a leaf that holds data (class normal, special or dedup) is on the same physical device"
        ),
        "leaf.disk_neighbours": Spec.word("the other leaves on the same physical device, of many the first, or empty"),
    },
)
def shared_disks(host: Subject, facts: Facts) -> Iterator[Fact]:
    """Leaves on one physical device: mirrors that are none, and logs that die with the data.

    Each leaf is compared with all others. Two share a device when they end at the same whole disk, or at disks that are one
    device by their names (``disk.names``): namespaces of one NVMe drive, paths of one LUN."""
    groups = Groups(facts)
    for subject in groups.subjects:
        leaf = groups.leaves[subject]
        if isinstance(leaf.disks, Unknown):
            yield from (Fact(subject, name, leaf.disks) for _, name in shared_disks.specs)
            continue
        near = groups.all.near(leaf)
        text = ", ".join((*map(str, near[:MOST]), "more")[: len(near)])
        here = ", ".join(sorted(leaf.names.sure))
        seen = Evidence(f"shares {here} with {text}" if near else f"alone on {here}", "lsblk")
        yield Fact(subject, "disk_neighbours", _neighbour(text, groups.all, leaf, groups, seen))
        legs = groups.legs(leaf)
        yield Fact(subject, "shares_disk_with_leg", _neighbour(bool(legs.near(leaf)), legs, leaf, groups, seen))
        data = groups.data
        yield Fact(subject, "shares_disk_with_data", _neighbour(bool(data.near(leaf)), data, leaf, groups, seen))


def _neighbour(value: bool | str, group: Group, leaf: Leaf, groups: Groups, seen: Evidence) -> Judged:
    """One neighbour of the group that is seen decides; that there is none is known only when nothing is left open."""
    if value:
        return Known(value, (seen,))
    doubts = [*group.left_out(leaf), *(_doubt(leaf, groups.leaves[other]) for other in group.doubts(leaf))]
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


# -- what it lies on ------------------------------------------------------------------------------------------------

WRITES, SERVED = "w", "/dev/nbd"


@derivation("leaf", open_in_guest=Spec.word("the virtual machine that has it open for writing, or empty"))
def open_in_guest(leaf: Subject, facts: Facts) -> Judged:
    """Whether a virtual machine of this host has the device of a leaf open for writing: two kernels then write to one pool.

    What it has open is told by the number of the device. It counts where that is the leaf's device or anything that this lies
    on; a partition beside it is another one. What a guest reaches by SCSI commands (/dev/sgN) is not told by a number: who has
    such a device open may have any drive. Who serves a network block device to this host has that open as well, and writes
    nothing there. Known to be none only where all that guests have open was seen, and the way from the leaf to its disks."""
    guests = need(facts.get(HOST, "guests"))
    if not guests.value:
        return Known("", guests.evidence)
    opened, closed, generic = (facts.get(HOST, name) for name in ("guest_files", "closed_guests", "generic_guests"))
    node, nodes, disks = (facts.get(leaf, name) for name in ("node", "nodes", "disks"))
    mine = {node.word(), *nodes.words(), *(disk.name for disk in facts.linked(leaf, "disks"))}
    names = dict(facts.get(HOST, "open_guests").rows(Guest))
    for number, how, where, _ in opened.rows(GuestFile):
        if how == WRITES and not where.startswith(SERVED) and where.removeprefix("/dev/") in mine:
            text = harmless(f"guest {names.get(number, number)} (process {number})")
            return Known(text, (Evidence(f"{text} has {where} open for writing", f"ls -l /proc/{number}/fd"),))
    unseen = gaps((opened, closed, generic, node, nodes, disks))
    if hidden := closed.rows(ClosedGuest):
        unseen.append(unknown(harmless(f"a guest, or what calls itself one: {hidden[0].reason}")))
    unseen += [
        unknown(harmless(f"guest {names.get(each, each)} (process {each}) reaches a drive by SCSI commands (/dev/sg)"))
        for each in generic.words()[:1]
    ]
    return join(unseen) if unseen else Known("", evidence(opened))


@derivation("pool", resilver_still_s=Spec.real("for how long the scan that runs has read nothing, s; 0 where it has"))
def resilver_still(pool: Subject, facts: Facts) -> Judged:
    """For how long a resilver that runs has not read a byte.

    One look has only the sum of what a pass has read. That is 0 for one that never began to move; one that moved and stands
    still now is not distinguished from a slow one. A pass begins with the scan or with the import of the pool. (OpenZFS
    module/zfs/spa_misc.c spa_scan_stat_init, spa_scan_get_stats; cmd/zpool/zpool_main.c print_scan_scrub_resilver_status) It
    counts since the pass began; where only the scan has a time, since that or the import, whichever is later. Unknown where no
    scan runs."""
    moved = need(facts.get(pool, "scan_moved"))
    if moved.value is True:
        return Known(0.0, moved.evidence)
    start = facts.get(pool, "scan_pass_start_s")
    if isinstance(start, Known):
        return _for(facts.now - start.number(), moved, start)
    known = values(facts, pool, "scan_start_s", "kstat_clock_ns", "kstat_created_ns")
    began, clock, created = map(Known.number, known)
    return _for(min(facts.now - began, (clock - created) / 1e9), moved, *known)


def _for(seconds: float, *found: Known) -> Known:
    seconds = round(max(seconds, 0.0))
    return Known(float(seconds), (Evidence(f"nothing read in {seconds} s"), *evidence(*found)))


NOT_REDUNDANT = "0"


@derivation("leaf", survives_drive_loss=Spec.flag("RAID below it keeps it whole when one drive dies"))
def survives_drive_loss(leaf: Subject, facts: Facts) -> Judged:
    """Whether what a leaf lies on survives the death of a drive: RAID of the kernel, or of a controller that says its level.

    It says nothing of bad blocks: OpenZFS sees one copy, and cannot tell what lies below which half of a mirror is right. A
    RAID of the kernel is enough; without one, every disk must be a redundant volume."""
    kernel = facts.get(leaf, "redundant_below")
    if is_true(kernel):
        return _apart(leaf, facts) or kernel
    volumes = [(disk, _volume(disk, facts)) for disk in linked(facts, leaf, "disks")]
    if not volumes:
        return unknown(f"{leaf}: no disks are known")
    for disk, volume in volumes:
        if isinstance(volume, Known) and volume.value is False:
            return Known(False, need(kernel).evidence + about(disk, volume))
    every(volume for _, volume in volumes)
    return Known(True, about_each(volumes))


@catch_missing
def _apart(leaf: Subject, facts: Facts) -> Unknown | None:
    """Two legs may be namespaces of one drive. Paths of dm-multipath have all names in common, and are one leg."""
    if "multipath" in need(facts.get(leaf, "layers")).words():
        return None
    known_as = [names((disk,), facts).all for disk in facts.linked(leaf, "disks")]
    twice = {name for at, each in enumerate(known_as) for other in known_as[:at] for name in each & other}
    return unknown(f"{leaf}: two of the disks below it give {min(twice)}, and may be one drive") if twice else None


@catch_missing
def _volume(disk: Subject, facts: Facts) -> Judged:
    """Whether it is a volume of a controller at a level that survives the death of a drive."""
    volume = need(facts.get(disk, "raid_volume"))
    if volume.value is False:
        return volume
    level = need(facts.get(disk, "raid_level"))
    return Known(level.value != NOT_REDUNDANT, level.evidence)
