"""How much longer one leg of a mirror takes for its writes and flushes than the fastest, by the kernel's counters since boot.

The legs of a mirror get the same writes and flushes, and a commit returns when all have answered, so that one slow leg decides
for all. The counters are those of the whole disk: legs whose numbers of writes differ much do not do the same work, and are
not compared. (Linux Documentation/block/stat.rst: write I/Os, write ticks, flush I/Os, flush ticks; OpenZFS
module/zfs/vdev_mirror.c vdev_mirror_io_start)
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from auditor.derive.combine import every, values
from auditor.facts import Evidence, Fact, Facts, Judged, Known, Subject, Unknown, flag, known, real, unknown, word

SUBJECT = "vdev"
FACTS = {
    "legs_worked": flag("it is a mirror, and each leg has done enough writes since boot to be compared"),
    "slowest_leg": word("its leg that took longest for each write or flush since boot"),
    "slowest_leg_ms": real("what that leg took on average, ms"),
    "slowest_leg_times": real("how many times longer than the fastest leg"),
}
ENOUGH = 100_000  # writes
ALIKE = 2  # times as many writes as another leg


class Leg(NamedTuple):
    """name: of the leaf. writes: since boot; ms: of each write or flush on average."""

    name: str
    disk: str
    writes: int
    ms: float


def derive(vdev: Subject, facts: Facts) -> Iterator[Fact]:
    """All of FACTS of a mirror whose legs did enough; of others that they did not."""
    legs = _legs(vdev, facts)
    if isinstance(legs, Unknown):
        yield from (Fact(vdev, name, legs) for name in FACTS)
        return
    worked = len(legs) > 1 and all(leg.writes >= ENOUGH for leg in legs)
    counts = ", ".join(f"{leg.disk} {leg.writes:,}" for leg in legs) or "it is no mirror"
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


def _legs(vdev: Subject, facts: Facts) -> list[Leg] | Unknown:
    """Empty where it is no mirror."""
    kind = facts.get(vdev, "type")
    if isinstance(kind, Unknown):
        return kind
    if kind.value != "mirror":
        return []
    leaves = every((facts.get(vdev, "leaves"), *(facts.get(leaf, "disks") for leaf in facts.linked(vdev, "leaves"))))
    if isinstance(leaves, Unknown):
        return leaves
    legs = list[Leg]()
    for leaf in facts.linked(vdev, "leaves"):
        for disk in facts.linked(leaf, "disks"):
            counted = values(facts, disk, "writes", "write_ms", "flushes", "flush_ms")
            if isinstance(counted, Unknown):
                return counted
            writes, write_ms, flushes, flush_ms = (int(str(each.value)) for each in counted)
            legs.append(Leg(leaf.name, disk.name, writes, (write_ms + flush_ms) / max(writes + flushes, 1)))
    return legs
