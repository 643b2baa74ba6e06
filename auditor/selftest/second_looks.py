"""What a recording of an older zaudit lacks: the second looks at lists that have no end mark. Both looks print one list, so
what the second would have said follows from the first; with it the self-test can lose something of either."""

from __future__ import annotations

from dataclasses import replace

from auditor.collect import zpool_events
from auditor.host.request import Capture
from auditor.recording.recording import Recording

EVENTS = ("zpool", "events", "-H", "-v")


def added(past: Recording) -> Recording:
    """The same, where it has the first looks and not the second ones."""
    commands = dict(past.commands)
    lists = []
    for argv, answer in past.commands.items():
        match argv:
            case ("zpool", "events", "-H", pool) if answer.exit == 0 and pool != "-v":
                lists.append((pool, answer.stdout.decode().splitlines()))
            case ("zpool", "history", pool) if answer.exit == 0:
                commands.setdefault(("zpool", "history", "-l", pool), answer)
    if lists:
        commands.setdefault(EVENTS, Capture(0, _numbered(lists).encode()))
    return replace(past, commands=commands)


def _numbered(lists: list[tuple[str, list[str]]]) -> str:
    """As the kernel numbers them: those of all pools in their order. Lines that are no events have no number."""
    rows = [
        (zpool_events.event(found), line, pool)
        for pool, lines in lists
        for line in lines
        if (found := zpool_events.LINE.fullmatch(line))
    ]
    rows.sort(key=lambda row: row[0].rpartition(" ")[0])
    return "".join(
        f'{line}\n        pool = "{pool}"\n        eid = {number:#x}\n'
        for number, (_, line, pool) in enumerate(rows, 1)
    )
