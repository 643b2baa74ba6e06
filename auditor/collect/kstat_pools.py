"""``/proc/spl/kstat/zfs/*/state``: the imported pools as the kernel lists them, beside ``zpool list``.

A pool that ``zpool import`` is looking for at that moment is listed as ``$import``; it is not imported. (OpenZFS
module/zfs/spa_stats.c, spa_state_init; TRYIMPORT_NAME in include/sys/spa.h)
"""

from __future__ import annotations

from collections.abc import Iterator

from auditor.collect import kstat
from auditor.facts import Fact, Facts, Subject, known, words
from auditor.host.request import Files, Read

PER = "host"
SUBJECT = "host"
FACTS = {"kstat_pools": words("names of the imported pools")}


def request(host: Subject, facts: Facts) -> Read:
    """One file a pool."""
    return Read((f"{kstat.ROOT}/*/state",))


def parse(reply: Files, host: Subject) -> Iterator[Fact]:
    """The folders that hold such a file; raises ValueError when there is none (that may also mean no permission), or when
    one of them was kept back."""
    folders = (path.removeprefix(f"{kstat.ROOT}/").removesuffix("/state") for path in reply.text)
    names = tuple(sorted(name for name in folders if not name.startswith("$")))
    if not names or not reply.complete(f"{kstat.ROOT}/*/state"):
        raise ValueError("no pool has a state here, or one that could not be read")
    yield Fact(host, "kstat_pools", known(names, ", ".join(names), f"ls -d {kstat.ROOT}/*/"))
