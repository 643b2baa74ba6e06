"""Whether a top-level vdev is whole after a crash: of leaves that lie in memory (a file, or a loop device, on tmpfs) nothing
is left then, and it can lose as many as its redundancy bears, less those that are gone already."""

from __future__ import annotations

from collections.abc import Iterator

from auditor.derive.combine import about
from auditor.facts import Evidence, Fact, Facts, Judged, Known, Subject, Unknown, flag, join

SUBJECT = "vdev"
FACTS = {"outlives_memory": flag("no more of its leaves lie in memory than it can lose")}
MEMORY = ("tmpfs", "ramfs")


def derive(vdev: Subject, facts: Facts) -> Iterator[Fact]:
    yield Fact(vdev, "outlives_memory", _judged(vdev, facts))


def _judged(vdev: Subject, facts: Facts) -> Judged:
    """Known where those that are seen decide it."""
    leaves = facts.get(vdev, "leaves")
    if isinstance(leaves, Unknown):
        return leaves
    below = [(leaf, facts.get(leaf, "below")) for leaf in facts.linked(vdev, "leaves")]
    in_memory = [(leaf, each) for leaf, each in below if isinstance(each, Known) and each.value in MEMORY]
    unseen = [each for _, each in below if isinstance(each, Unknown)]
    if not in_memory and not unseen:
        return Known(True, leaves.evidence)
    left = facts.get(vdev, "failures_left")
    if isinstance(left, Unknown) or not isinstance(left.value, int):
        return left if isinstance(left, Unknown) else join(unseen)
    seen = (Evidence(f"{len(in_memory)} of {len(below)} leaves of {vdev} lie in memory"), *left.evidence)
    evidence = (*seen, *(piece for leaf, each in in_memory for piece in about(leaf, each)))
    if len(in_memory) > left.value:
        return Known(False, evidence)
    return Known(True, evidence) if len(in_memory) + len(unseen) <= left.value else join(unseen)
