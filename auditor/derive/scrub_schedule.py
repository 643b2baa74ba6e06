"""Whether a scrub of a pool is scheduled where distributions and OpenZFS put it: a systemd timer, or a file of cron."""

from __future__ import annotations

from collections.abc import Iterator

from auditor.facts import HOST, Fact, Facts, Known, Subject, Unknown, flag, join
from auditor.text import octets

SUBJECT = "pool"
FACTS = {"scrub_scheduled": flag("a timer of systemd or a file of cron that we looked at scrubs it")}
NEEDS = ("host.scrub_timers", "host.scrub_cron")
FOR_ALL = frozenset({"zfs-scrub.timer"})  # NixOS: all pools, or those that its configuration names
_PLAIN = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789:_.")


def derive(pool: Subject, facts: Facts) -> Iterator[Fact]:
    """One that is seen decides; without one, both places must have been looked at. Cron's job is for all pools."""
    timers, cron = facts.get(HOST, "scrub_timers"), facts.get(HOST, "scrub_cron")
    mine = f"@{escaped(pool.name)}.timer"
    named = map(str, timers.value) if isinstance(timers, Known) and isinstance(timers.value, tuple) else ()
    if isinstance(timers, Known) and any(name.endswith(mine) or name in FOR_ALL for name in named):
        yield Fact(pool, "scrub_scheduled", Known(True, timers.evidence))
    elif isinstance(cron, Known) and cron.value:
        yield Fact(pool, "scrub_scheduled", Known(True, cron.evidence))
    elif isinstance(timers, Unknown) or isinstance(cron, Unknown):
        missing = join([each for each in (timers, cron) if isinstance(each, Unknown)])
        yield Fact(pool, "scrub_scheduled", missing)
    else:
        yield Fact(pool, "scrub_scheduled", Known(False, (*timers.evidence, *cron.evidence)))


def escaped(name: str) -> str:
    """As systemd-escape spells it: everything else as \\xNN of its bytes."""
    return "".join(
        char if char in _PLAIN and not (i == 0 and char == ".") else "".join(f"\\x{byte:02x}" for byte in octets(char))
        for i, char in enumerate(name)
    )
