"""How many devices a top-level vdev can lose before its data is gone. (zpoolconcepts.7, Virtual Devices)

As it is built, not as it is now: a degraded mirror is still a mirror, and ``pool-degraded`` says that it is degraded.
"""

from __future__ import annotations

from collections.abc import Iterator

from auditor.derive.combine import is_true, values
from auditor.facts import Fact, Facts, Known, Subject, Unknown, number, unknown

SUBJECT = "vdev"
FACTS = {"failures_tolerated": number("devices that it can lose without losing data")}
NEEDS = ("vdev.type", "vdev.leaves", "vdev.parity", "leaf.being_replaced")
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
        # the old and the new leaf of a replacement are one leg
        leaves = facts.linked(vdev, "leaves")
        replaced = sum(is_true(facts.get(leaf, "being_replaced")) for leaf in leaves)
        legs = len(leaves) - replaced // 2
        return legs - 1 if legs else None
    if kind == "draid":
        match facts.get(vdev, "parity"):
            case Known(int(parity)) if parity > 0:
                return parity
    return None
