"""Whether ``zpool events`` reaches to now: a pool that is suspended was suspended by an event."""

from __future__ import annotations

from auditor.collect import zpool_events
from auditor.facts import HOST, Fact, Facts, Known, unknown


def compare(facts: Facts) -> None:
    """All pools. The kernel keeps the newest events, so the list lost its end, or somebody cleared it."""
    for pool in facts.linked(HOST, "pools"):
        states = [(facts.get(pool, "suspended"), True), (facts.get(pool, "kstat_state"), "SUSPENDED")]
        saying = next((found for found, stuck in states if isinstance(found, Known) and found.value == stuck), None)
        events = facts.get(pool, "events_io_failure")
        if saying and isinstance(events, Known) and events.value == 0:
            why = unknown(f"{saying.evidence[0].text}, and zpool events has no io_failure: it does not reach to now")
            for name in zpool_events.FACTS:
                facts.replace(Fact(pool, name, why))
