"""``systemctl list-units --type=timer '*scrub*'``: active timers that scrub (zfs-scrub-weekly@POOL.timer and their like)."""

from __future__ import annotations

from collections.abc import Iterator

from auditor.facts import HOST, Fact, Facts, Subject, known, words
from auditor.host.request import Output, Request, Run

PER = "host"
SUBJECT = "host"
FACTS = {"scrub_timers": words("names of active systemd timers with 'scrub' in them")}


def request(host: Subject, facts: Facts) -> Request:
    """Without --all: units that are loaded and not inactive."""
    return Run(("systemctl", "list-units", "--type=timer", "--plain", "--no-legend", "*scrub*"), package="systemd")


def parse(reply: Output, host: Subject) -> Iterator[Fact]:
    """UNIT LOAD ACTIVE SUB DESCRIPTION, one a line; nothing when there is none."""
    active = []
    for line in reply.text.splitlines():
        unit, *states = line.split()[:4]
        if not unit.endswith(".timer") or len(states) != 3:
            raise ValueError(f"not a timer: {line[:80]}")
        if states[:2] == ["loaded", "active"]:
            active.append(unit)
    text = ", ".join(active) or "no active timer with 'scrub' in its name"
    yield Fact(HOST, "scrub_timers", known(tuple(active), text, "systemctl list-timers '*scrub*'"))
