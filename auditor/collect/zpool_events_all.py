"""``zpool events -H -v``: the events of all pools with their numbers, a second look beside ``zpool events -H POOL``.

The kernel numbers the events of all pools one after the other, from 1 when its module is loaded (zevent_eid in
module/zfs/fm.c); the oldest are forgotten, so what it remembers has no gap. Only time, class, pool and number of each are
kept, and recorded: the rest says what was done with which dataset. Needs root.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from auditor.collect.zpool_events import DROPPED, LINE, event
from auditor.facts import Fact, Facts, Subject, known, words
from auditor.host.request import Output, Run

PER = "host"
SUBJECT = "host"
FACTS = {"events": words("NUMBER TIME CLASS POOL of each event that the kernel still remembers, of all pools")}
# zpool_do_events_next() in cmd/zpool/zpool_main.c: a line as without -v, then each member on its own, indented by 8
KEEP = r"^[A-Z][a-z]{2} [ \d]\d \d{4} |^        (pool|eid) = |^dropped \d+ events$"
_POOL = re.compile(r'        pool = "([^"]+)"')
_NUMBER = re.compile(r"        eid = 0x([\da-f]{1,16})")


def request(host: Subject, facts: Facts) -> Run:
    return Run(("zpool", "events", "-H", "-v"), package="zfsutils-linux", keep=KEEP)


def parse(reply: Output, host: Subject) -> Iterator[Fact]:
    """Raises ValueError for an event without a number, with two of them, or with two pools. Some events have no pool: they
    are told of each (zpool_do_events_next())."""
    seen: list[tuple[str, list[str], list[str]]] = []
    for line in reply.text.splitlines():
        if found := LINE.fullmatch(line):
            seen.append((event(found), [], []))
        elif seen and (found := _NUMBER.fullmatch(line)):
            seen[-1][1].append(str(int(found[1], 16)))
        elif seen and (found := _POOL.fullmatch(line)):
            seen[-1][2].append(found[1])
        elif not DROPPED.fullmatch(line):
            raise ValueError(f"not an event: {line[:80]}")
    if not seen or not all(len(numbers) == 1 and len(pools) < 2 for _, numbers, pools in seen):
        raise ValueError("an event without its number, or no event at all")
    events = tuple(f"{number} {what} {''.join(pools)}" for what, (number,), pools in seen)
    if len({each.partition(" ")[0] for each in events}) < len(events):
        raise ValueError("two events with one number")
    yield Fact(host, "events", known(events, f"{len(events)} events", reply.command))
