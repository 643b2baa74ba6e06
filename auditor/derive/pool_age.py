"""How long ago a pool was scrubbed and created, at the moment when the host was looked at."""

from __future__ import annotations

from collections.abc import Iterator

from auditor.facts import Evidence, Fact, Facts, Known, Subject, Unknown, flag, real, unknown
from auditor.text import quoted

SUBJECT = "pool"
FACTS = {
    "scrub_age_days": real("days since the last scrub ended without being canceled"),
    "unscrubbed_days": real("days for which it is certain that no scrub has ended without being canceled"),
    "ever_scrubbed": flag("a scrub is on record"),
    "age_days": real("days since the pool was created"),
}
UNFINISHED = ("in progress", "paused")
PARTIAL = {"resilver": "a resilver", "errorscrub": "a scrub of known errors only (zpool scrub -e)"}
DAY_S = 86400.0


def derive(pool: Subject, facts: Facts) -> Iterator[Fact]:
    """zpool status remembers the last scan only: after a resilver nothing is known of the scrub before it."""
    yield Fact(pool, "ever_scrubbed", _ever(pool, facts))
    yield Fact(pool, "scrub_age_days", _scrub(pool, facts))
    yield Fact(pool, "unscrubbed_days", _without(pool, facts))
    yield Fact(pool, "age_days", since(facts, Subject("dataset", pool.name), "creation", "created"))


def _ever(pool: Subject, facts: Facts) -> Known | Unknown:
    function = facts.get(pool, "scan_function")
    if isinstance(function, Unknown):
        return function
    if function.value in PARTIAL:
        what = PARTIAL[str(function.value)]
        return unknown(f"{pool.name}: the last scan was {what}; zpool status does not remember the scrub before it")
    return Known(function.value == "scrub", function.evidence)


def _scrub(pool: Subject, facts: Facts) -> Known | Unknown:
    function, state = facts.get(pool, "scan_function"), facts.get(pool, "scan_state")
    if isinstance(function, Unknown):
        return function
    if isinstance(state, Unknown):
        return state
    if function.value != "scrub":
        ever = _ever(pool, facts)
        return ever if isinstance(ever, Unknown) else unknown(f"{pool.name}: no scrub is on record")
    if state.value in UNFINISHED:
        text = f"{pool.name}: a scrub is {state.value}; zpool status does not remember the scrub before it"
        return unknown(
            text, f"zpool scrub {quoted(pool.name)}" if state.value == "paused" else "wait until it has ended"
        )
    if state.value != "finished":
        return unknown(f"{pool.name}: the last scrub was {state.value}; when one last finished is not on record")
    return since(facts, pool, "scan_end_s", "scrub finished")


def _without(pool: Subject, facts: Facts) -> Known | Unknown:
    """Each scan that begins takes the place of the one before it, of whatever kind: since the last one ended, or, where it
    has not, since it began, no scrub has ended."""
    function, state = facts.get(pool, "scan_function"), facts.get(pool, "scan_state")
    if isinstance(function, Unknown):
        return function
    if isinstance(state, Unknown):
        return state
    if function.value == "none":
        return unknown(f"{pool.name}: no scrub is on record")
    if state.value in UNFINISHED:
        return since(facts, pool, "scan_start_s", f"{function.value} {state.value}, begun")
    return since(facts, pool, "scan_end_s", f"{function.value} {state.value}")


def since(facts: Facts, subject: Subject, name: str, what: str) -> Known | Unknown:
    """Days between a moment (a fact in seconds since the epoch) and the audit; what: words for the evidence."""
    then = facts.get(subject, name)
    if isinstance(then, Unknown):
        return then
    assert isinstance(then.value, int)
    days = (facts.now - then.value) / DAY_S
    if days < -1:
        return unknown(f"{subject.name}: {what} {-days:.0f} days in the future: the clock of this host is wrong")
    seen = Evidence(f"{what} {_ago(days)}", then.evidence[0].command.replace("{subject}", quoted(subject.name)))
    return Known(max(days, 0.0), (seen,))


def _ago(days: float) -> str:
    """today, 1 day ago, 6 days ago."""
    whole = round(max(days, 0.0))
    return "today" if not whole else f"{whole} day{'s' if whole > 1 else ''} ago"
