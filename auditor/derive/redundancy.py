"""How many devices a top-level vdev can lose before its data is gone. (zpoolconcepts.7, Virtual Devices)

As it is built, not as it is now: a degraded mirror is still a mirror, and ``pool-degraded`` says that it is degraded. A hot
spare that stands in for a disk adds no leg, and a raidz survives no more failures with one than without.
"""

from __future__ import annotations

from collections.abc import Iterator

from auditor.derive.combine import values
from auditor.facts import Fact, Facts, Known, Subject, Unknown, number, unknown

SUBJECT = "vdev"
FACTS = {"failures_tolerated": number("devices that it can lose without losing data")}
PARITY = {"raidz1": 1, "raidz2": 2, "raidz3": 3}


def derive(vdev: Subject, facts: Facts) -> Iterator[Fact]:
    """vdev.failures_tolerated; unknown for a vdev without data (indirect, hole)."""
    found = values(facts, vdev, "type", "leaves")
    if isinstance(found, Unknown):
        yield Fact(vdev, "failures_tolerated", found)
        return
    kind, leaves = found
    tolerated = _tolerated(str(kind.value), vdev, facts)
    if tolerated is None:
        yield Fact(vdev, "failures_tolerated", unknown(f"{vdev}: the redundancy of type {kind.value!r} is not known"))
    else:
        yield Fact(vdev, "failures_tolerated", Known(tolerated, kind.evidence + leaves.evidence))


def _tolerated(kind: str, vdev: Subject, facts: Facts) -> int | None:
    if kind in PARITY:
        return PARITY[kind]
    if kind in ("disk", "file", "replacing", "spare"):
        return 0
    if kind == "mirror":
        match facts.get(vdev, "legs"):
            case Known(int(legs)) if legs > 0:
                return legs - 1
    if kind == "draid":
        match facts.get(vdev, "parity"):
            case Known(int(parity)) if parity > 0:
                return parity
    return None
