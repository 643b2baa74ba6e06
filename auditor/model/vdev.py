"""A top-level vdev: how many devices it can lose as it is built and as it is now, and how its legs differ or depend on each
other."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from auditor.facts import Evidence, Fact, Facts, Judged, Known, Spec, Subject, Unknown, is_true, join, known, unknown
from auditor.model.derivation import (
    Missing,
    about,
    about_each,
    catch_missing,
    derivation,
    every,
    evidence,
    gaps,
    need,
    values,
)

PARITY = {"raidz1": 1, "raidz2": 2, "raidz3": 3}


@derivation("vdev", failures_tolerated=Spec.number("devices that it can lose without losing data"))
def failures_tolerated(vdev: Subject, facts: Facts) -> Judged:
    """How many devices a top-level vdev can lose before its data is gone. (zpoolconcepts.7, Virtual Devices)

    As it is built, not as it is now: a degraded mirror is still a mirror, and ``pool-degraded`` says that it is degraded. A hot
    spare that stands in for a disk adds no leg, and a raidz survives no more failures with one than without.
    vdev.failures_tolerated; unknown for a vdev without data (indirect, hole)."""
    found = values(facts, vdev, "type", "leaves")
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
    """How many more devices a top-level vdev can lose, and whether more are gone than it can do without: then its pool cannot
    work, whatever its state says.

    OpenZFS learns that a device is gone from an I/O error or from zed. Until then leaf and pool stay ONLINE while writers hang
    (seen for minutes with failmode=wait). A disk that is being replaced, or that a spare stands in for, is not missed. A leg
    that is still resilvered lacks what is older than its absence, though it is ONLINE: without it a mirror has one copy of
    that. Known where those that are seen decide it; else unknown, with why the others were not seen."""
    known = values(facts, vdev, "leaves", "failures_tolerated")
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
        yield Fact(vdev, "too_few_devices", join(unseen))
    else:
        yield Fact(vdev, "too_few_devices", Known(False, known[0].evidence + known[1].evidence))


def resilver_unmarked(pool: Subject, facts: Facts) -> bool:
    """Does a resilver run while no leaf of the pool has the mark? (zpool status -j has none)"""
    scan = facts.get(pool, "scan_function").word(), facts.get(pool, "scan_state").word()
    marks = (facts.get(leaf, "resilvering") for leaf in facts.linked(pool, "leaves"))
    return scan == ("resilver", "in progress") and not any(map(is_true, marks))


def _left(vdev: Subject, left: int | None, gone: list[Evidence], unseen: list[Unknown]) -> Judged:
    """left: None where others may stand in for those that are gone."""
    if unseen:
        return join(unseen)
    if left is None:
        return unknown(f"{vdev}: devices of it are gone or resilvered, and which copies are whole is not clear")
    left = max(left, 0)
    return Known(left, (Evidence(f"{vdev} can lose {left} more devices"), *dict.fromkeys(gone)))


def _each_is_a_leg(vdev: Subject, leaves: tuple[Subject, ...], facts: Facts) -> bool:
    """Whether no disk of it is being replaced and no spare stands in: as many leaves as legs, or a raidz that is ONLINE."""
    if any(is_true(facts.get(leaf, "being_replaced")) for leaf in leaves):
        return False
    legs, state = facts.get(vdev, "legs"), facts.get(vdev, "state")
    if isinstance(legs, Known):
        return legs.value == len(leaves)
    return len(leaves) == 1 or (isinstance(state, Known) and state.value == "ONLINE")


MEMORY = ("tmpfs", "ramfs")


@derivation("vdev", outlives_memory=Spec.flag("no more of its leaves lie in memory than it can lose"))
def outlives_memory(vdev: Subject, facts: Facts) -> Judged:
    """Whether it is whole after a crash: of leaves that lie in memory (a file, or a loop device, on tmpfs) nothing is left
    then, and it can lose as many as its redundancy bears, less those that are gone already.

    Known where those that are seen decide it."""
    leaves = need(facts.get(vdev, "leaves"))
    below = [(leaf, facts.get(leaf, "below")) for leaf in facts.linked(vdev, "leaves")]
    in_memory = [(leaf, each) for leaf, each in below if isinstance(each, Known) and each.value in MEMORY]
    unseen = gaps(each for _, each in below)
    if not in_memory and not unseen:
        return Known(True, leaves.evidence)
    left = need(facts.get(vdev, "failures_left"))
    seen = (Evidence(f"{len(in_memory)} of {len(below)} leaves of {vdev} lie in memory"), *left.evidence)
    seen = (*seen, *about_each(in_memory))
    if len(in_memory) > left.number():
        return Known(False, seen)
    return Known(True, seen) if len(in_memory) + len(unseen) <= left.number() else join(unseen)


@derivation(
    "vdev",
    native_ashift=Spec.number("largest physical block of its disks as a power of two: 12 is 4096 bytes"),
    least_ashift=Spec.number("the same as far as its disks report it: a virtual disk of 512-byte blocks is 9"),
)
def native_ashift(vdev: Subject, facts: Facts) -> Iterator[Fact]:
    """The block size that the disks of a vdev are built for, to compare its ashift with.

    As OpenZFS reports it of a leaf, else as the kernel does of the disks. A virtual disk of 512-byte blocks says nothing of the
    device below it: native_ashift is unknown there."""
    need(facts.get(vdev, "leaves"))
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
    need(facts.get(leaf, "disks"))
    found = every(_disk(disk, facts, reported) for disk in facts.linked(leaf, "disks"))
    return max(found, key=Known.number)


@catch_missing
def _disk(disk: Subject, facts: Facts, reported: bool) -> Judged:
    size = need(facts.get(disk, "physical_block_bytes"))
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
    """What all legs of a mirror are attached to: a controller, a carrier card or a PCIe switch.

    The kernel's device tree names every PCI function on the way to a disk
    (``/devices/pci0000:00/0000:00:1c.0/0000:02:00.0/nvme/nvme0/nvme0n1``). What the paths of all legs share below the host
    bridge is a single point of failure. Unknown for a virtual disk, and for a vdev of one disk, which has no legs."""
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
    """The last PCI function that all ways pass, or empty."""
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
    """How much longer one leg of a mirror, raidz or draid takes for its writes and flushes than the fastest, by the kernel's
    counters since boot.

    All legs of a vdev get as many writes and flushes, and a commit returns when all have answered, so that one slow leg decides
    for all. The counters are those of the whole disk: legs whose numbers of writes differ much do not do the same work, and are
    not compared. (Linux Documentation/block/stat.rst: write I/Os, write ticks, flush I/Os, flush ticks; OpenZFS
    module/zfs/vdev_mirror.c vdev_mirror_io_start, vdev_raidz.c vdev_raidz_io_start) Of a vdev of one leg, or whose legs did too
    little, only that is known."""
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
    """Empty where it has one leg."""
    if need(facts.get(vdev, "type")).value not in ("mirror", "draid", *PARITY):
        return []
    leaves = facts.linked(vdev, "leaves")
    every((facts.get(vdev, "leaves"), *(facts.get(leaf, "disks") for leaf in leaves)))
    legs = list[Leg]()
    for leaf in leaves:
        for disk in facts.linked(leaf, "disks"):
            writes, write_ms, flushes, flush_ms = map(
                Known.number, values(facts, disk, "writes", "write_ms", "flushes", "flush_ms")
            )
            legs.append(Leg(leaf.name, disk.name, writes, (write_ms + flush_ms) / max(writes + flushes, 1)))
    return legs
