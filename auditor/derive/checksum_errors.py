"""Which devices of a pool have had checksum errors: of several at once, what they share is likelier the cause than each."""

from __future__ import annotations

from collections.abc import Iterator

from auditor.facts import Evidence, Fact, Facts, Judged, Known, Subject, Unknown, join, words

SUBJECT = "pool"
FACTS = {"leaves_with_checksum_errors": words("its devices that have delivered wrong data since import or zpool clear")}


def derive(pool: Subject, facts: Facts) -> Iterator[Fact]:
    """At least these where some could not be seen; none only where all were."""
    yield Fact(pool, "leaves_with_checksum_errors", _wrong(pool, facts))


def _wrong(pool: Subject, facts: Facts) -> Judged:
    leaves = facts.get(pool, "leaves")
    if isinstance(leaves, Unknown):
        return leaves
    counts = [(leaf, facts.get(leaf, "checksum_errors")) for leaf in facts.linked(pool, "leaves")]
    wrong = [(leaf, count) for leaf, count in counts if isinstance(count, Known) and count.value]
    unseen = [count for _, count in counts if isinstance(count, Unknown)]
    if unseen and len(wrong) < 2:
        return join(unseen)
    seen = tuple(evidence for _, count in (wrong or counts) if isinstance(count, Known) for evidence in count.evidence)
    return Known(tuple(leaf.name for leaf, _ in wrong), seen or (Evidence("the pool has no device"),))
