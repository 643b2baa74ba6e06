"""Top-level vdevs and their leaves: how many devices one can lose as it is built and as it is now, how its legs differ or
depend on each other, and what a leaf lies on."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from heapq import merge
from itertools import islice
from typing import NamedTuple

from auditor.facts import (
    DATA,
    HOST,
    Evidence,
    Fact,
    Facts,
    Judged,
    Known,
    Spec,
    Subject,
    Unknown,
    Value,
    is_true,
    known,
    unknown,
)
from auditor.model.derivation import Missing, about, about_each, catch_missing, derivation, every, evidence, gaps
from auditor.model.disk import Names, names
from auditor.sources.guests import ClosedGuest, Guest, GuestFile
from auditor.text import harmless

PARITY = {"raidz1": 1, "raidz2": 2, "raidz3": 3}


@derivation("vdev", failures_tolerated=Spec.number("devices that it can lose without losing data"))
def failures_tolerated(vdev: Subject, facts: Facts) -> Judged:
    """How many devices a top-level vdev can lose before its data is gone, as it is built. (zpoolconcepts.7, Virtual
    Devices)

    A degraded mirror is still a mirror, and a hot spare in use adds no leg. Unknown for a vdev without data (indirect,
    hole)."""
    found = facts.values(vdev, "type", "leaves")
    kind, leaves = found
    tolerated = _tolerated(str(kind.value), vdev, facts)
    if tolerated is None:
        return unknown(f"{vdev}: the redundancy of type {kind.value!r} is not known")
    return Known(tolerated, kind.evidence + leaves.evidence)


def _tolerated(kind: str, vdev: Subject, facts: Facts) -> int | None:
    if kind in PARITY:
        return PARITY[kind]
    if kind in ("disk", "file", "replacing", "spare"):
        return 0
    if kind in ("mirror", "draid"):
        match facts.get(vdev, "legs" if kind == "mirror" else "parity"):
            case Known(int(count)) if count > 0:
                return count - 1 if kind == "mirror" else count
    return None


THERE = ("ONLINE", "DEGRADED")


@derivation(
    "vdev",
    too_few_devices=Spec.flag("more of its devices are gone than it can do without"),
    failures_left=Spec.number("devices that it can lose from now on without losing data; 0 where too many are gone"),
)
def failures_left(vdev: Subject, facts: Facts) -> Iterator[Fact]:
    """How many more devices a vdev can lose, and whether more are gone than it can do without: then its pool cannot work,
    whatever its state says.

    OpenZFS learns of a lost device from an I/O error or from zed; until then leaf and pool stay ONLINE while writers hang
    (seen for minutes with failmode=wait). A disk that is replaced or has a spare is not missed. A leg that resilvers lacks
    older data, though it is ONLINE. Known where those that are seen decide it."""
    known = facts.values(vdev, "leaves", "failures_tolerated")
    leaves = facts.linked(vdev, "leaves")
    spare = int(known[1].value) if isinstance(known[1].value, int) else 0
    gone: list[Evidence] = []
    unseen: list[Unknown] = []
    count = 0
    for leaf in leaves:
        state, present = facts.get(leaf, "state"), facts.get(leaf, "device_present")
        if isinstance(state, Known) and state.value not in THERE:
            count, gone = count + 1, [*gone, *about(leaf, state)]
        elif isinstance(present, Known) and present.value is False:
            count, gone = count + 1, [*gone, *about(leaf, present)]
        elif isinstance(state, Unknown) or (
            isinstance(present, Unknown) and facts.get(leaf, "type").word("disk") == "disk"  # a file has no device
        ):
            unseen += gaps((state, present))
    marks = [(leaf, mark) for leaf in leaves if is_true(mark := facts.get(leaf, "resilvering"))]
    short = count + len(marks)
    left = spare - short if not short or _each_is_a_leg(vdev, leaves, facts) else None
    if spare and resilver_unmarked(Subject("pool", vdev.within), facts):
        left = None
    seen = [*gone, *about_each(marks)]
    yield Fact(vdev, "failures_left", _left(vdev, left, seen, unseen))
    if count > spare and not _each_is_a_leg(vdev, leaves, facts):
        why = f"{vdev}: {count} of its devices are gone, and whether others replace them is not clear"
        yield Fact(vdev, "too_few_devices", unknown(why))
    elif count > spare:
        yield Fact(vdev, "too_few_devices", Known(True, tuple(dict.fromkeys(gone))))
    elif unseen and count + len(unseen) > spare:
        yield Fact(vdev, "too_few_devices", Unknown.join(unseen))
    else:
        yield Fact(vdev, "too_few_devices", Known(False, known[0].evidence + known[1].evidence))


def resilver_unmarked(pool: Subject, facts: Facts) -> bool:
    """May a leaf without a mark lack data? One that a resilver fills while none of the pool is marked (zpool status -j marks
    none of a sequential one), and after one that left errors, or was canceled: the DTL keeps what it could not write (vdev.c
    vdev_dtl_reassess_impl(), DTL_SCRUB)."""
    function, state = (facts.get(pool, name).word() for name in ("scan_function", "scan_state"))
    marks = (facts.get(leaf, "resilvering") for leaf in facts.linked(pool, "leaves"))
    whole = state == "finished" and not facts.get(pool, "scan_errors").or_none()
    return function == "resilver" and not whole and not any(map(is_true, marks))


def _left(vdev: Subject, left: int | None, gone: list[Evidence], unseen: list[Unknown]) -> Judged:
    """left: None where others may stand in for those that are gone."""
    if unseen:
        return Unknown.join(unseen)
    if left is None:
        return unknown(f"{vdev}: devices of it are gone or resilvered, and which copies are whole is not clear")
    left = max(left, 0)
    return Known(left, (Evidence(f"{vdev} can lose {left} more devices"), *dict.fromkeys(gone)))


def _each_is_a_leg(vdev: Subject, leaves: tuple[Subject, ...], facts: Facts) -> bool:
    """Whether no disk of it is being replaced and no spare stands in: as many leaves as children."""
    children = facts.get(vdev, "legs").or_none() or facts.get(vdev, "width").or_none() or 1
    return children == len(leaves) and not any(is_true(facts.get(leaf, "being_replaced")) for leaf in leaves)


MEMORY = ("tmpfs", "ramfs")


@derivation("vdev", outlives_memory=Spec.flag("no more of its leaves lie in memory than it can lose"))
def outlives_memory(vdev: Subject, facts: Facts) -> Judged:
    """Whether it is whole after a crash: of leaves that lie in memory (a file, or a loop device, on tmpfs) nothing is left
    then, and it can lose as many as its redundancy bears, less those that are gone already.

    Known where those that are seen decide it."""
    leaves = facts.need(vdev, "leaves")
    below = [(leaf, facts.get(leaf, "below")) for leaf in facts.linked(vdev, "leaves")]
    in_memory = [(leaf, each) for leaf, each in below if isinstance(each, Known) and each.value in MEMORY]
    unseen = gaps(each for _, each in below)
    if not in_memory and not unseen:
        return Known(True, leaves.evidence)
    left = facts.need(vdev, "failures_left")
    seen = (Evidence(f"{len(in_memory)} of {len(below)} leaves of {vdev} lie in memory"), *left.evidence)
    seen = (*seen, *about_each(in_memory))
    if len(in_memory) > left.number():
        return Known(False, seen)
    return Known(True, seen) if len(in_memory) + len(unseen) <= left.number() else Unknown.join(unseen)


@derivation(
    "vdev",
    native_ashift=Spec.number("largest physical block of its disks as a power of two: 12 is 4096 bytes"),
    least_ashift=Spec.number("the same as far as its disks report it: a virtual disk of 512-byte blocks is 9"),
)
def native_ashift(vdev: Subject, facts: Facts) -> Iterator[Fact]:
    """The block size that the disks of a vdev are built for: as OpenZFS reports it of a leaf, else as the kernel does of
    the disks. native_ashift is unknown of a virtual disk of 512-byte blocks, which says nothing of the device below."""
    facts.need(vdev, "leaves")
    for name in ("least_ashift", "native_ashift"):
        found = every(_leaf(leaf, facts, name == "least_ashift") for leaf in facts.linked(vdev, "leaves"))
        if not found:
            raise Missing(unknown(f"{vdev}: no leaf is known"))
        largest = max(map(Known.number, found))
        yield Fact(vdev, name, Known(largest, evidence(*(each for each in found if each.value == largest))))


@catch_missing
def _leaf(leaf: Subject, facts: Facts, reported: bool) -> Judged:
    said = facts.get(leaf, "physical_ashift")
    if isinstance(said, Known):
        return Known(said.value, about(leaf, said))
    native = facts.get(leaf, "native_block_bytes")
    if isinstance(native, Known) and isinstance(native.value, int):
        return Known(native.value.bit_length() - 1, about(leaf, native))
    facts.need(leaf, "disks")
    found = every(_disk(disk, facts, reported) for disk in facts.linked(leaf, "disks"))
    return max(found, key=Known.number)


@catch_missing
def _disk(disk: Subject, facts: Facts, reported: bool) -> Judged:
    size = facts.need(disk, "physical_block_bytes")
    if size.value == 512 and is_true(facts.get(disk, "virtual")) and not reported:
        return unknown(f"{disk.name} is virtual: its 512-byte blocks say nothing of the device below")
    return Known(size.number().bit_length() - 1, about(disk, size))


_FUNCTION = re.compile(r"/([0-9a-f]{4,}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])(?=/)")


@derivation(
    "vdev",
    legs_share_controller=Spec.flag("all its disks are attached to one PCI device: controller, carrier card or switch"),
    shared_controller=Spec.word("that PCI device, or empty"),
)
def shared_controller(vdev: Subject, facts: Facts) -> Iterator[Fact]:
    """What all legs of a mirror are attached to: the last PCI function that the sysfs paths of all disks share
    (``/devices/pci0000:00/0000:00:1c.0/0000:02:00.0/nvme/nvme0/nvme0n1``), a single point of failure. Unknown for a virtual
    disk, and for a vdev of one disk."""
    leaves = facts.linked(vdev, "leaves")
    every([facts.get(vdev, "leaves"), *(facts.get(leaf, "disks") for leaf in leaves)])
    disks = sorted({disk for leaf in leaves for disk in facts.linked(leaf, "disks")})
    ways = every(_way(disk, facts) for disk in disks)
    if len(disks) < 2:
        raise Missing(unknown(f"{vdev}: fewer than two disks are known of it"))
    shared = Known(
        _common([_FUNCTION.findall(str(way.value)) for way in ways]), about_each(zip(disks, ways, strict=True))
    )
    yield Fact(vdev, "legs_share_controller", shared._replace(value=bool(shared.value)))
    yield Fact(vdev, "shared_controller", shared)


def _way(disk: Subject, facts: Facts) -> Judged:
    virtual = facts.get(disk, "virtual")
    if is_true(virtual):
        return unknown(f"{disk.name} is virtual: what it is attached to is decided on its host")
    path = facts.get(disk, "sysfs_path")
    if isinstance(path, Known) and not _FUNCTION.search(str(path.value)):
        return unknown(f"{disk.name}: no PCI device on the way to it ({path.value})")
    return virtual if isinstance(virtual, Unknown) else path


def _common(ways: list[list[str]]) -> str:
    last = ""
    for step in zip(*ways, strict=False):
        if len(set(step)) > 1:
            break
        last = step[0]
    return last


ENOUGH = 100_000  # writes
ALIKE = 2  # times as many writes as another leg


class Leg(NamedTuple):
    """name: of the leaf. writes: since boot; ms: of each write or flush on average."""

    name: str
    disk: str
    writes: int
    ms: float


@derivation(
    "vdev",
    legs_worked=Spec.flag("it has several legs, and each has done enough writes since boot to be compared"),
    slowest_leg=Spec.word("its leg that took longest for each write or flush since boot"),
    slowest_leg_ms=Spec.real("what that leg took on average, ms"),
    slowest_leg_times=Spec.real("how many times longer than the fastest leg"),
)
def slow_leg(vdev: Subject, facts: Facts) -> Iterator[Fact]:
    """How much longer one leg of a mirror, raidz or draid takes for its writes and flushes than the fastest, by the
    kernel's counters since boot.

    A commit returns when all legs have answered, so one slow leg decides. The counters are of the whole disk: legs whose
    numbers of writes differ much are not compared. (Linux Documentation/block/stat.rst: write I/Os, write ticks, flush
    I/Os, flush ticks; OpenZFS module/zfs/vdev_mirror.c vdev_mirror_io_start, vdev_raidz.c vdev_raidz_io_start) Of one leg,
    or legs that did too little, only that is known."""
    legs = _legs(vdev, facts)
    worked = len(legs) > 1 and all(leg.writes >= ENOUGH for leg in legs)
    counts = ", ".join(f"{leg.disk} {leg.writes:,}" for leg in legs) or "it has one leg"
    command = "cat /sys/block/*/stat   # fields 5, 8, 16 and 17"
    yield Fact(vdev, "legs_worked", known(worked, f"writes since boot: {counts}", command))
    if not worked:
        return
    fastest, slowest = min(legs, key=lambda leg: leg.ms), max(legs, key=lambda leg: leg.ms)
    found: tuple[Judged, ...]
    if max(leg.writes for leg in legs) > ALIKE * min(leg.writes for leg in legs):
        found = (unknown(f"{vdev}: its legs did not do the same work since boot ({counts} writes)"),) * 3
    else:
        text = ", ".join(f"{leg.disk} {leg.ms:.3g} ms" for leg in legs)
        seen = (Evidence(f"{text} for each write or flush", command),)
        times = round(slowest.ms / fastest.ms, 1) if fastest.ms else (1.0 if not slowest.ms else 1e6)
        found = tuple(Known(value, seen) for value in (slowest.name, round(slowest.ms, 3), times))
    for name, value in zip(("slowest_leg", "slowest_leg_ms", "slowest_leg_times"), found, strict=True):
        yield Fact(vdev, name, value)


def _legs(vdev: Subject, facts: Facts) -> list[Leg]:
    if facts.need(vdev, "type").value not in ("mirror", "draid", *PARITY):
        return []
    leaves = facts.linked(vdev, "leaves")
    every((facts.get(vdev, "leaves"), *(facts.get(leaf, "disks") for leaf in leaves)))
    legs = list[Leg]()
    for leaf in leaves:
        for disk in facts.linked(leaf, "disks"):
            writes, write_ms, flushes, flush_ms = map(
                Known.number, facts.values(disk, "writes", "write_ms", "flushes", "flush_ms")
            )
            legs.append(Leg(leaf.name, disk.name, writes, (write_ms + flush_ms) / max(writes + flushes, 1)))
    return legs


# What a leaf (a device of a pool) lies on: disks that it shares with others, virtual machines that have it open, RAID
# below it; and how its pool's resilver gets on.

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
    return Unknown.join([*doubts[:MOST], *([MORE] if len(doubts) > MOST else [])])


def _doubt(leaf: Leaf, other: Leaf) -> Unknown:
    """Why it is not known whether another leaf is on a device of this one."""
    own, its = leaf.names, other.names
    where = [other.disks] if isinstance(other.disks, Unknown) else []
    common = sorted(own.all & its.all)
    blurred = [each.unsure[name] for name in common for each in (own, its) if name in each.unsure]
    return Unknown.join((*own.nameless, *where, *its.nameless, *blurred))


# -- what it lies on ------------------------------------------------------------------------------------------------

WRITES, SERVED = "w", "/dev/nbd"


@derivation("leaf", open_in_guest=Spec.word("the virtual machine that has it open for writing, or empty"))
def open_in_guest(leaf: Subject, facts: Facts) -> Judged:
    """Whether a virtual machine of this host has the device of a leaf open for writing: two kernels then write to one pool.

    What it has open is told by the number of the device. It counts where that is the leaf's device or anything that this lies
    on; a partition beside it is another one. What a guest reaches by SCSI commands (/dev/sgN) is not told by a number: who has
    such a device open may have any drive. Who serves a network block device to this host has that open as well, and writes
    nothing there. Known to be none only where all that guests have open was seen, and the way from the leaf to its disks."""
    guests = facts.need(HOST, "guests")
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
    return Unknown.join(unseen) if unseen else Known("", evidence(opened))


@derivation("pool", resilver_still_s=Spec.real("for how long the scan that runs has read nothing, s; 0 where it has"))
def resilver_still(pool: Subject, facts: Facts) -> Judged:
    """For how long a resilver that runs has not read a byte.

    One look has only the sum of what a pass has read. That is 0 for one that never began to move; one that moved and stands
    still now is not distinguished from a slow one. A pass begins with the scan or with the import of the pool. (OpenZFS
    module/zfs/spa_misc.c spa_scan_stat_init, spa_scan_get_stats; cmd/zpool/zpool_main.c print_scan_scrub_resilver_status) It
    counts since the pass began; where only the scan has a time, since that or the import, whichever is later. Unknown where no
    scan runs."""
    moved = facts.need(pool, "scan_moved")
    if moved.value is True:
        return Known(0.0, moved.evidence)
    start = facts.get(pool, "scan_pass_start_s")
    if isinstance(start, Known):
        return _for(facts.now - start.number(), moved, start)
    known = facts.values(pool, "scan_start_s", "kstat_clock_ns", "kstat_created_ns")
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
    volumes = [(disk, _volume(disk, facts)) for disk in facts.need_linked(leaf, "disks")]
    if not volumes:
        return unknown(f"{leaf}: no disks are known")
    for disk, volume in volumes:
        if isinstance(volume, Known) and volume.value is False:
            return Known(False, kernel.need().evidence + about(disk, volume))
    every(volume for _, volume in volumes)
    return Known(True, about_each(volumes))


@catch_missing
def _apart(leaf: Subject, facts: Facts) -> Unknown | None:
    """Two legs may be namespaces of one drive. Paths of dm-multipath have all names in common, and are one leg."""
    if "multipath" in facts.need(leaf, "layers").words():
        return None
    known_as = [names((disk,), facts).all for disk in facts.linked(leaf, "disks")]
    twice = {name for at, each in enumerate(known_as) for other in known_as[:at] for name in each & other}
    return unknown(f"{leaf}: two of the disks below it give {min(twice)}, and may be one drive") if twice else None


@catch_missing
def _volume(disk: Subject, facts: Facts) -> Judged:
    """Whether it is a volume of a controller at a level that survives the death of a drive."""
    volume = facts.need(disk, "raid_volume")
    if volume.value is False:
        return volume
    level = facts.need(disk, "raid_level")
    return Known(level.value != NOT_REDUNDANT, level.evidence)
