"""Whether a scrub of a pool is scheduled where distributions and OpenZFS put it: a systemd timer, or a file of cron."""

from __future__ import annotations

from collections.abc import Iterator

from auditor.facts import HOST, Fact, Facts, Judged, Known, Subject, Unknown, flag, join, words_of
from auditor.text import unit_escaped

SUBJECT = "pool"
FACTS = {"scrub_scheduled": flag("a timer of systemd or a file of cron that we looked at scrubs it")}
NEEDS = ("host.scrub_timers", "host.scrub_cron", "host.scrub_jobs", "host.kernel_release")
FOR_ALL = frozenset({"zfs-scrub.timer"})  # NixOS: all pools, or those that its configuration names


def derive(pool: Subject, facts: Facts) -> Iterator[Fact]:
    """One that is seen decides; without one, all places must have been looked at. Cron's job is for all pools."""
    timers, cron = facts.get(HOST, "scrub_timers"), facts.get(HOST, "scrub_cron")
    places = [timers, cron, *_appliance(facts)]
    mine = f"@{unit_escaped(pool.name)}.timer"
    seen = next((each for each in places[2:] if isinstance(each, Known) and pool.name in words_of(each)), None)
    if isinstance(timers, Known) and any(name.endswith(mine) or name in FOR_ALL for name in words_of(timers)):
        seen = timers
    elif isinstance(cron, Known) and cron.value:
        seen = cron
    evidence = tuple(piece for each in places if isinstance(each, Known) for piece in each.evidence)
    if seen:
        yield Fact(pool, "scrub_scheduled", Known(True, seen.evidence))
    elif missing := [each for each in places if isinstance(each, Unknown)]:
        yield Fact(pool, "scrub_scheduled", join(missing))
    else:
        yield Fact(pool, "scrub_scheduled", Known(False, evidence))


def _appliance(facts: Facts) -> list[Judged]:
    """Jobs of TrueNAS, where this is one, or may be."""
    release = facts.get(HOST, "kernel_release")
    elsewhere = isinstance(release, Known) and "truenas" not in str(release.value)
    return [] if elsewhere else [facts.get(HOST, "scrub_jobs")]
