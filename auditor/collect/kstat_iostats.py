"""``/proc/spl/kstat/zfs/POOL/iostats``: how much I/O went past the ARC (Direct I/O). The rows came with 2.3."""

from __future__ import annotations

from collections.abc import Iterator

from auditor.collect import kstat
from auditor.facts import Fact, Facts, Spec, Subject, number
from auditor.host.request import Files, Read, Request

PER = "pool"
SUBJECT = "pool"
FACTS: dict[str, Spec] = {
    "arc_read_count": number("reads through the ARC since the import"),
    "arc_read_bytes": number("bytes of them"),
    "arc_write_count": number("writes through the ARC since the import"),
    "arc_write_bytes": number("bytes of them"),
    "direct_read_count": number("Direct I/O reads since the import"),
    "direct_read_bytes": number("bytes of them"),
    "direct_write_count": number("Direct I/O writes since the import"),
    "direct_write_bytes": number("bytes of them"),
}


def request(pool: Subject, facts: Facts) -> Request:
    """One file."""
    return Read((f"{kstat.ROOT}/{pool.name}/iostats",))


def parse(reply: Files, pool: Subject) -> Iterator[Fact]:
    """Each row under its own name; 2.1 and 2.2 have none of them."""
    return kstat.of_rows(reply, f"{kstat.ROOT}/{pool.name}/iostats", pool, FACTS)
