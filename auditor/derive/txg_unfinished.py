"""For how long the oldest TXG of a pool that is not committed has been quiescing or syncing.

Both times are of one clock, gethrtime(). That of the look is read before the list of TXGs, so what comes out is rather too
short than too long, by milliseconds.
"""

from __future__ import annotations

from collections.abc import Iterator

from auditor.derive.combine import evidence
from auditor.facts import Fact, Facts, Judged, Known, Subject, Unknown, real

SUBJECT = "pool"
FACTS = {"txg_unfinished_ms": real("for how long its oldest unfinished TXG is quiescing or syncing; 0 where none is")}


def derive(pool: Subject, facts: Facts) -> Iterator[Fact]:
    """Unknown where there is such a TXG and no clock."""
    yield Fact(
        pool, "txg_unfinished_ms", _ms(facts.get(pool, "txg_unfinished_since_ns"), facts.get(pool, "kstat_clock_ns"))
    )


def _ms(since: Judged, now: Judged) -> Judged:
    if isinstance(since, Unknown):
        return since
    if since.value == 0:
        return Known(0.0, since.evidence)
    if isinstance(now, Unknown):
        return now
    assert isinstance(since.value, int)
    assert isinstance(now.value, int)
    return Known(round(max(now.value - since.value, 0) / 1e6, 3), evidence(since, now))
