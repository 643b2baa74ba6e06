"""How many more devices a top-level vdev can lose, and whether more are gone than it can do without: then its pool cannot
work, whatever its state says.

OpenZFS learns that a device is gone from an I/O error or from zed. Until then leaf and pool stay ONLINE while writers hang
(seen for minutes with failmode=wait). A disk that is being replaced, or that a spare stands in for, is not missed. A leg that
is still resilvered lacks what is older than its absence, though it is ONLINE: without it a mirror has one copy of that.
"""

from __future__ import annotations

from collections.abc import Iterator

from auditor.derive.combine import about, values
from auditor.facts import (
    Evidence,
    Fact,
    Facts,
    Judged,
    Known,
    Subject,
    Unknown,
    flag,
    is_true,
    join,
    number,
    unknown,
    word_of,
)

SUBJECT = "vdev"
FACTS = {
    "too_few_devices": flag("more of its devices are gone than it can do without"),
    "failures_left": number("devices that it can lose from now on without losing data; 0 where too many are gone"),
}
THERE = ("ONLINE", "DEGRADED")


def derive(vdev: Subject, facts: Facts) -> Iterator[Fact]:
    """Known where those that are seen decide it; else unknown, with why the others were not seen."""
    known = values(facts, vdev, "leaves", "failures_tolerated")
    if isinstance(known, Unknown):
        yield Fact(vdev, "too_few_devices", known)
        yield Fact(vdev, "failures_left", known)
        return
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
        elif isinstance(state, Unknown) or (isinstance(present, Unknown) and _is_disk(leaf, facts)):
            unseen += [each for each in (state, present) if isinstance(each, Unknown)]
    marks = [(leaf, mark) for leaf in leaves if is_true(mark := facts.get(leaf, "resilvering"))]
    short = count + len(marks)
    left = spare - short if not short or _each_is_a_leg(vdev, leaves, facts) else None
    if spare and resilver_unmarked(Subject("pool", vdev.within), facts):
        left = None
    seen = [*gone, *(piece for leaf, mark in marks for piece in about(leaf, mark))]
    yield Fact(vdev, "failures_left", _left(vdev, left, seen, unseen))
    if count > spare and not _each_is_a_leg(vdev, leaves, facts):
        why = f"{vdev}: {count} of its devices are gone, and whether others stand in for them is not clear"
        yield Fact(vdev, "too_few_devices", unknown(why))
    elif count > spare:
        yield Fact(vdev, "too_few_devices", Known(True, tuple(dict.fromkeys(gone))))
    elif unseen and count + len(unseen) > spare:
        yield Fact(vdev, "too_few_devices", join(unseen))
    else:
        yield Fact(vdev, "too_few_devices", Known(False, known[0].evidence + known[1].evidence))


def resilver_unmarked(pool: Subject, facts: Facts) -> bool:
    """Does a resilver run while no leaf of the pool has the mark? (zpool status -j has none)"""
    scan = word_of(facts.get(pool, "scan_function")), word_of(facts.get(pool, "scan_state"))
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


def _is_disk(leaf: Subject, facts: Facts) -> bool:
    kind = facts.get(leaf, "type")
    return not (isinstance(kind, Known) and kind.value != "disk")  # a file has no device


def _each_is_a_leg(vdev: Subject, leaves: tuple[Subject, ...], facts: Facts) -> bool:
    """Whether no disk of it is being replaced and no spare stands in: as many leaves as legs, or a raidz that is ONLINE."""
    if any(is_true(facts.get(leaf, "being_replaced")) for leaf in leaves):
        return False
    legs, state = facts.get(vdev, "legs"), facts.get(vdev, "state")
    if isinstance(legs, Known):
        return legs.value == len(leaves)
    return len(leaves) == 1 or (isinstance(state, Known) and state.value == "ONLINE")
