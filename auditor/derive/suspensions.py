"""How often a pool was suspended, by its events and by the kernel's log: each forgets, and somebody may have cleared one."""

from __future__ import annotations

from collections.abc import Iterator

from auditor.facts import HOST, Fact, Facts, Known, Subject, number, pairs_of

SUBJECT = "pool"
FACTS = {
    "suspensions": number("times that it was suspended because I/O failed, at least, as far as anything remembers")
}


def derive(pool: Subject, facts: Facts) -> Iterator[Fact]:
    """What one of them has seen counts; that there was none is the word of the events, which all suspensions are."""
    events, log = facts.get(pool, "events_io_failure"), facts.get(HOST, "kernel_log_suspended")
    if not (isinstance(events, Known) and events.value) and isinstance(log, Known):
        for (name, times), seen in zip(pairs_of(log), log.evidence, strict=False):
            if name == pool.name:
                yield Fact(pool, "suspensions", Known(int(times), (seen,)))
                return
    yield Fact(pool, "suspensions", events)
