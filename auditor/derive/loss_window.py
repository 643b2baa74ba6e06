"""How far back a crash reaches where no log keeps what was written: to the opening of the oldest TXG that is not synced.

A sync starts zfs_txg_timeout after the start of the one before, or at its end where that took longer. So a write waits at
most the timeout for its sync to start, and then for the sync: a TXG lives that long, from its opening to the end of its sync.
At rest that is the timeout, with syncs as long as the timeout it is twice as much, and under load more. Snapshots and scrubs
force TXGs and shorten their lives, so the timeout and the longest sync count at least.

(OpenZFS module/zfs/txg.c txg_sync_thread: "delta = ddi_get_lbolt() - start", the same in 2.1.11, 2.3.9 and 2.4.4)
"""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil

from auditor.derive.combine import about, every
from auditor.facts import HOST, Fact, Facts, Judged, Known, Subject, Unknown, unknown, word

SUBJECT = "host"
FACTS = {
    "loss_window": word("how far back a crash reaches without a log, in the pool of the host where that is longest"),
    "pool.loss_window": word("how far back a crash reaches without a log: up to 7.3 s, by its TXGs"),
}


def derive(host: Subject, facts: Facts) -> Iterator[Fact]:
    """Of each pool, and of the host for what concerns all of them."""
    for subject, pools in ((host, facts.linked(host, "pools")), *((pool, (pool,)) for pool in facts.subjects("pool"))):
        yield Fact(subject, "loss_window", _window(pools, facts))


def _window(pools: tuple[Subject, ...], facts: Facts) -> Judged:
    """By the TXGs of these pools, where each has a history."""
    timeout = facts.get(HOST, "zfs_txg_timeout")
    if isinstance(timeout, Unknown):
        return timeout
    assert isinstance(timeout.value, int)
    lives, syncs = (every(facts.get(pool, name) for pool in pools) for name in ("txg_life_ms_max", "txg_sync_ms_max"))
    if isinstance(lives, Unknown):
        return lives
    if isinstance(syncs, Unknown):
        return syncs
    if not pools:
        return unknown("no pool was seen")
    longest = max(*(_ms(life) for life in lives), *(timeout.value * 1000 + _ms(sync) for sync in syncs))
    seen = (
        each for pool, *found in zip(pools, lives, syncs, strict=True) for one in found for each in about(pool, one)
    )
    return Known(f"up to {ceil(longest / 100) / 10:g} s", (*timeout.evidence, *seen))


def _ms(found: Known) -> float:
    assert isinstance(found.value, float)
    return found.value
