"""Whether ``zpool events`` has all that the kernel remembers: compared with the list of all pools and the state of the pool."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from auditor.facts import HOST, Fact, Facts, Known, Subject, unknown, words_of
from auditor.sources import zpool_history


def compare(facts: Facts) -> None:
    """All pools. The newest events, and the oldest, may be in one list alone: it was asked for at another moment. What is in
    one alone between two that are in the other was lost. What only -v has is not believed: it prints texts of users as they
    are (the value of a property that somebody may set, man 8 zfs-allow), so that its lines may be forged."""
    everything = words_of(facts.get(HOST, "events"))
    for pool in facts.linked(HOST, "pools"):
        seen = words_of(facts.get(pool, "events"))
        if seen and everything:
            _second_look(pool, seen, everything, facts)
        _suspended(pool, facts)


def _second_look(pool: Subject, seen: Sequence[str], everything: Sequence[str], facts: Facts) -> None:
    if gap := _gap([int(each.partition(" ")[0]) for each in everything]):
        _doubt(
            pool, f"zpool events -v lacks event {gap} of the kernel, which is neither the oldest nor the newest", facts
        )
        return
    rows = (each.split(" ", 4) for each in everything)
    again = [f"{day} {time} {name}" for _, day, time, name, of in rows if of in ("", pool.name)]
    only_seen, only_again = (Counter(one) - Counter(other) for one, other in ((seen, again), (again, seen)))
    one, other = f"zpool events {pool.name}", "zpool events -v"
    for lost, there, here, lacks in ((only_again, other, seen, one), (only_seen, one, again, other)):
        if inside := [each for each in lost if here and _time(min(here)) < _time(each) < _time(max(here))]:
            _doubt(pool, f"{there} has {min(inside)}, {lacks} lacks it", facts)
            return
    if grave := [each for each in only_again if each.rpartition(" ")[2] in zpool_history.CLASSES.values()]:
        _doubt(pool, f"{other} ends with {max(grave, key=_time)}, which {one} does not have", facts, "run zaudit again")


def _gap(numbers: Sequence[int]) -> int:
    """The first that is missing between the least and the greatest, or 0."""
    there = set(numbers)
    return next((each + 1 for each in sorted(there)[:-1] if each + 1 not in there), 0)


def _suspended(pool: Subject, facts: Facts) -> None:
    """A pool that is suspended was suspended by an event: else the list lost its end, or somebody cleared it."""
    states = [(facts.get(pool, "suspended"), True), (facts.get(pool, "kstat_state"), "SUSPENDED")]
    saying = next((found for found, stuck in states if isinstance(found, Known) and found.value == stuck), None)
    events = facts.get(pool, "events_io_failure")
    if saying and isinstance(events, Known) and events.value == 0:
        _doubt(pool, f"{saying.evidence[0].text}, and zpool events has no io_failure: it does not reach to now", facts)


def _doubt(pool: Subject, text: str, facts: Facts, remedy: str = "") -> None:
    for name in zpool_history.events.facts:
        facts.replace(Fact(pool, name, unknown(text, remedy)))


def _time(event: str) -> str:
    """``2026-11-21 10:00:02.000000001``, by which events are put in order."""
    return event.rpartition(" ")[0]
