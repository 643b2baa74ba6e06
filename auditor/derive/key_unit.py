"""Whether systemd knows that the key of an encryption root is loaded, where mounts are bound to the unit that loads it.

Where it does not, systemd unmounts what is bound to it: what is mounted by hand at once, what was mounted before the mount was
made a unit with the next daemon-reload, and what is in use as soon as it is not. (seen in guests of the lab, OpenZFS 2.1.11 and
2.4.4; openzfs/zfs issues 11248, 12418)
"""

from __future__ import annotations

from collections.abc import Iterator

from auditor.derive.combine import evidence
from auditor.facts import HOST, Fact, Facts, Judged, Known, Subject, Unknown, word, words_of

SUBJECT = "dataset"
FACTS = {"key_unit": word("its unit, where it is bound: none, started, not started", "none", "started", "not started")}


def derive(dataset: Subject, facts: Facts) -> Iterator[Fact]:
    """By the name of the dataset, whether it is an encryption root or not."""
    yield Fact(dataset, "key_unit", _unit(dataset, facts))


def _unit(dataset: Subject, facts: Facts) -> Judged:
    bound, active = facts.get(HOST, "keys_bound"), facts.get(HOST, "key_units_active")
    if isinstance(bound, Unknown):
        return bound
    if dataset.name not in words_of(bound):
        return Known("none", bound.evidence)
    if isinstance(active, Unknown):
        return active
    return Known("started" if dataset.name in words_of(active) else "not started", evidence(bound, active))
