"""``zpool events -H POOL``: what the kernel reported of a pool, as far as it still remembers. Needs root.

One line an event, time TAB class (zpool_do_events_short() in cmd/zpool/zpool_main.c). The kernel keeps the newest
zfs_zevent_len_max of all pools (512) since boot or since somebody cleared them, so that none is there proves nothing of
the time before the oldest that is. What came before the pool was created belongs to another pool of that name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from auditor.facts import Fact, Facts, Subject, known, number, words
from auditor.host.request import Output, Request, Run

PER = "pool"
SUBJECT = "pool"
CLASSES = {  # include/sys/fm/fs/zfs.h
    "events_deadman": "ereport.fs.zfs.deadman",
    "events_io_failure": "ereport.fs.zfs.io_failure",
    "events_delay": "ereport.fs.zfs.delay",
    "events_checksum": "ereport.fs.zfs.checksum",
    "events_direct_read": "ereport.fs.zfs.dio_verify_rd",
    "events_direct_write": "ereport.fs.zfs.dio_verify_wr",
    "events_authentication": "ereport.fs.zfs.authentication",
    "events_probe_failure": "ereport.fs.zfs.probe_failure",
    "events_removed": "resource.fs.zfs.removed",
    "events_cache_file": "ereport.fs.zfs.config_cache_write",
}
CREATED = "sysevent.fs.zfs.pool_create"  # include/sys/sysevent/eventdefs.h ESC_ZFS_POOL_CREATE
COUNTED = {
    "events_kept": number("events of the pool that the kernel still remembers"),
    "events_deadman": number("of them: an I/O hung"),
    "events_io_failure": number("of them: the pool was suspended because I/O failed"),
    "events_delay": number("of them: an I/O was slow"),
    "events_checksum": number("of them: a checksum did not match"),
    "events_direct_read": number("of them: a checksum did not match in a read by Direct I/O"),
    "events_direct_write": number("of them: a checksum did not match in a write by Direct I/O, which failed"),
    "events_authentication": number("of them: an encrypted block could not be decrypted or authenticated"),
    "events_probe_failure": number("of them: a device could neither be read nor written any more"),
    "events_removed": number("of them: a device was gone"),
    "events_cache_file": number("of them: the cache file of pools could not be written"),
}
FACTS = {**COUNTED, "events": words("TIME CLASS of each event, the oldest first, as the list has them")}
LINE = re.compile(r"([A-Z][a-z]{2} [ \d]\d \d{4} +[\d:]++\.\d++)[^\t]*+\t([a-z][\w.]*)")
DROPPED = re.compile(r"dropped \d+ events")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def request(pool: Subject, facts: Facts) -> Request:
    """Never -c, which clears them."""
    return Run(("zpool", "events", "-H", pool.name), package="zfsutils-linux")


def parse(reply: Output, pool: Subject) -> Iterator[Fact]:
    """Counts; raises ValueError when there is no event at all: the import of the pool is one, so they were cleared."""
    seen: list[str] = []
    for line in reply.text.splitlines():
        if found := LINE.fullmatch(line):
            seen.append(event(found))
        elif not DROPPED.fullmatch(line):
            raise ValueError(f"not an event: {line[:80]}")
    if not seen:
        raise ValueError("no event at all: they were cleared")
    yield Fact(pool, "events", known(tuple(seen), f"{len(seen)} events", reply.command))
    yield from counts(pool, seen, reply.command)


def event(found: re.Match[str]) -> str:
    """What a line of LINE says, as ``2026-11-21 10:00:02.000000001 CLASS``: in this form the order of words is that of time."""
    month, day, year, time = found[1].split()
    if month not in _MONTHS:
        raise ValueError(f"not an event: {found[0][:80]}")
    return f"{year}-{_MONTHS.index(month) + 1:02}-{int(day):02} {time} {found[2]}"


def counts(pool: Subject, events: Sequence[str], command: str) -> Iterator[Fact]:
    """The facts of COUNTED from the events of a pool of this name, the oldest first; there is at least one."""
    pairs = [each.rsplit(" ", 1) for each in events]
    created = max((at for at, (_, name) in enumerate(pairs) if name == CREATED), default=0)
    seen = [(time.partition(".")[0], name) for time, name in pairs[created:]]
    since = f"of {len(seen)} events since {seen[0][0]}"
    yield Fact(pool, "events_kept", known(len(seen), f"{len(seen)} events since {seen[0][0]}", command))
    for name, class_ in CLASSES.items():
        times = [time for time, each in seen if each == class_]
        text = f"{len(times)} {class_} {since}" + (f", the last {times[-1]}" if times else "")
        yield Fact(pool, name, known(len(times), text, command))
