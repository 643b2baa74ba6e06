"""Which legs of a pool are not in use, by name, whatever the pool says of itself: its state may lag behind theirs."""

from __future__ import annotations

from collections.abc import Iterator

from auditor.derive.combine import about
from auditor.facts import Evidence, Fact, Facts, Judged, Known, Subject, Unknown, join, words

SUBJECT = "pool"
FACTS = {
    "legs_not_online": words("its data devices that are not ONLINE, with their state"),
    "legs_offline": words("those that were taken offline"),
    "legs_gone": words("those that are missing, faulted or degraded"),
}
GONE = ("DEGRADED", "FAULTED", "UNAVAIL", "REMOVED", "UNKNOWN")


def derive(pool: Subject, facts: Facts) -> Iterator[Fact]:
    """Of log devices another rule speaks."""
    leaves = facts.get(pool, "leaves")
    legs = [
        (leaf, facts.get(leaf, "state"))
        for leaf in facts.linked(pool, "leaves")
        if not _is_log(facts.get(leaf, "allocation_class"))
    ]
    unseen = [state for _, state in legs if isinstance(state, Unknown)]
    seen = [(leaf, state) for leaf, state in legs if isinstance(state, Known)]
    for name in FACTS:
        states = {"legs_offline": ("OFFLINE",), "legs_gone": GONE}.get(name, (*GONE, "OFFLINE"))
        bad = [(leaf, state) for leaf, state in seen if state.value in states]
        if isinstance(leaves, Unknown) or (unseen and not bad):
            yield Fact(pool, name, leaves if isinstance(leaves, Unknown) else join(unseen))
            continue
        named = tuple(f"{leaf.name} ({state.value})" if name == "legs_not_online" else leaf.name for leaf, state in bad)
        evidence = tuple(each for leaf, state in bad for each in about(leaf, state))
        yield Fact(pool, name, Known(named, evidence or (Evidence("each leg is ONLINE"),)))


def _is_log(found: Judged) -> bool:
    return isinstance(found, Known) and found.value == "log"
