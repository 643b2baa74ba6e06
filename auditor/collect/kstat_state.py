"""``/proc/spl/kstat/zfs/POOL/state``: the state of the pool without asking it anything, so never hangs.

SUSPENDED shows here; ``zpool status`` says so in its text only. (OpenZFS module/zfs/spa_misc.c, spa_state_to_name)
"""

from __future__ import annotations

from collections.abc import Iterator

from auditor.collect import kstat
from auditor.facts import Fact, Facts, Subject, known, word
from auditor.host.request import Files, Read, Request
from auditor.text import quoted

PER = "pool"
SUBJECT = "pool"
STATES = ("ONLINE", "DEGRADED", "FAULTED", "OFFLINE", "REMOVED", "UNAVAIL", "SUSPENDED")
FACTS = {"kstat_state": word("its state as the kernel module says", *STATES)}


def request(pool: Subject, facts: Facts) -> Request:
    """One file."""
    return Read((f"{kstat.ROOT}/{pool.name}/state",))


def parse(reply: Files, pool: Subject) -> Iterator[Fact]:
    """One word on one line."""
    path = f"{kstat.ROOT}/{pool.name}/state"
    for text in kstat.only(reply, path):
        state = text.removesuffix("\n")
        if state not in STATES:
            raise ValueError(f"{state!r} is not the state of a pool")
        yield Fact(pool, "kstat_state", known(state, state, f"cat {quoted(path)}"))
