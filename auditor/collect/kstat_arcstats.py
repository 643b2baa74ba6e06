"""``/proc/spl/kstat/zfs/arcstats``: how much memory the ARC has and may have. (OpenZFS include/sys/arc_impl.h)"""

from __future__ import annotations

from collections.abc import Iterator

from auditor.collect import kstat
from auditor.facts import HOST, Fact, Facts, Subject, number
from auditor.host.request import Files, Read, Request

PER = "host"
SUBJECT = "host"
PATH = f"{kstat.ROOT}/arcstats"
ROWS = {
    "hits": "arc_hits",
    "misses": "arc_misses",
    "size": "arc_size_bytes",
    "c": "arc_target_bytes",
    "c_min": "arc_min_bytes",
    "c_max": "arc_max_bytes",
    "memory_throttle_count": "arc_memory_throttle_count",
    "memory_direct_count": "arc_memory_direct_count",
    "memory_indirect_count": "arc_memory_indirect_count",
    "memory_available_bytes": "arc_memory_available_bytes",
    "arc_no_grow": "arc_no_grow",
    "arc_need_free": "arc_need_free_bytes",
    "arc_sys_free": "arc_sys_free_bytes",
    "l2_size": "arc_l2_size_bytes",
}
FACTS = {
    "arc_hits": number("reads answered from the ARC since the module was loaded"),
    "arc_misses": number("reads not answered from the ARC"),
    "arc_size_bytes": number("memory the ARC takes"),
    "arc_target_bytes": number("memory the ARC wants to take"),
    "arc_min_bytes": number("the least the ARC shrinks to"),
    "arc_max_bytes": number("the most the ARC grows to"),
    "arc_memory_throttle_count": number("writes held back for want of memory"),
    "arc_memory_direct_count": number("times an allocation had to wait for the ARC to shrink"),
    "arc_memory_indirect_count": number("times the kernel asked the ARC in the background to shrink"),
    "arc_memory_available_bytes": number("memory free before the ARC must shrink; below 0 it must"),
    "arc_no_grow": number("1: the ARC may not grow now"),
    "arc_need_free_bytes": number("what the ARC has been asked to give back"),
    "arc_sys_free_bytes": number("what the ARC leaves free for the system"),
    "arc_l2_size_bytes": number("data in the L2ARC before compression"),
}


def request(host: Subject, facts: Facts) -> Request:
    """One file."""
    return Read((PATH,))


def parse(reply: Files, host: Subject) -> Iterator[Fact]:
    """The rows that matter here, under clearer names."""
    for text in kstat.only(reply, PATH):
        for name, value in kstat.counts(text, PATH, ROWS):
            yield Fact(HOST, name, value)
