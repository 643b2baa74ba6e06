"""``/proc/spl/kstat/zfs/POOL/iostats``: how much I/O went past the ARC (Direct I/O). The rows came with 2.3.

Its header has the times at which the pool was imported and at which it was read, by the clock that stamps TXGs
(``kstat_txgs``): /proc/uptime goes on while the machine sleeps, and may be another one in a container. (OpenZFS
module/os/linux/spl/spl-kstat.c, ks_crtime, ks_snaptime)
"""

from __future__ import annotations

from collections.abc import Iterator

from auditor.collect import kstat
from auditor.facts import Fact, Facts, Spec, Subject, number
from auditor.host.request import Files, Read, Request

PER = "pool"
SUBJECT = "pool"
ROWS: dict[str, Spec] = {
    "arc_read_count": number("reads through the ARC since the import"),
    "arc_read_bytes": number("bytes of them"),
    "arc_write_count": number("writes through the ARC since the import"),
    "arc_write_bytes": number("bytes of them"),
    "direct_read_count": number("Direct I/O reads since the import"),
    "direct_read_bytes": number("bytes of them"),
    "direct_write_count": number("Direct I/O writes since the import"),
    "direct_write_bytes": number("bytes of them"),
}
CLOCKS = {
    "kstat_clock_ns": number("the clock of its TXGs when these were read, ns"),
    "kstat_created_ns": number("the same clock when it was imported, ns"),
}
FACTS = {**ROWS, **CLOCKS}


def request(pool: Subject, facts: Facts) -> Request:
    """One file."""
    return Read((f"{kstat.ROOT}/{pool.name}/iostats",))


def parse(reply: Files, pool: Subject) -> Iterator[Fact]:
    """Each row under its own name; 2.1 and 2.2 have none of them."""
    path = f"{kstat.ROOT}/{pool.name}/iostats"
    for text in kstat.only(reply, path):
        created, now = kstat.clocks(text, path)
        yield Fact(pool, "kstat_clock_ns", now)
        yield Fact(pool, "kstat_created_ns", created)
    yield from kstat.of_rows(reply, path, pool, ROWS)
