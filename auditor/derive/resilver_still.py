"""For how long a resilver that runs has not read a byte.

One look has only the sum of what a pass has read. That is 0 for one that never began to move; one that moved and stands
still now is not told apart from a slow one. A pass begins with the scan or with the import of the pool. (OpenZFS
module/zfs/spa_misc.c spa_scan_stat_init, spa_scan_get_stats; cmd/zpool/zpool_main.c print_scan_scrub_resilver_status)
"""

from __future__ import annotations

from collections.abc import Iterator

from auditor.derive.combine import evidence, values
from auditor.facts import Evidence, Fact, Facts, Judged, Known, Subject, Unknown, number_of, real

SUBJECT = "pool"
FACTS = {"resilver_still_s": real("for how long the scan that runs has read nothing, s; 0 where it has")}


def derive(pool: Subject, facts: Facts) -> Iterator[Fact]:
    """Unknown where no scan runs."""
    moved = facts.get(pool, "scan_moved")
    if isinstance(moved, Known):
        moved = Known(0.0, moved.evidence) if moved.value is True else _since(pool, moved, facts)
    yield Fact(pool, "resilver_still_s", moved)


def _since(pool: Subject, moved: Known, facts: Facts) -> Judged:
    """Since the pass began; where only the scan has a time, since that or the import, whichever is later."""
    start = facts.get(pool, "scan_pass_start_s")
    if isinstance(start, Known):
        return _for(facts.now - number_of(start), moved, start)
    known = values(facts, pool, "scan_start_s", "kstat_clock_ns", "kstat_created_ns")
    if isinstance(known, Unknown):
        return known
    began, clock, created = map(number_of, known)
    return _for(min(facts.now - began, (clock - created) / 1e9), moved, *known)


def _for(seconds: float, *found: Known) -> Known:
    seconds = round(max(seconds, 0.0))
    return Known(float(seconds), (Evidence(f"nothing read in {seconds} s"), *evidence(*found)))
