"""What OpenZFS must have written to the vdevs of a pool: what ``flush_counters`` asks, and is the same for each leaf."""

from __future__ import annotations

from collections.abc import Iterator

from auditor.data import releases
from auditor.derive.combine import every
from auditor.facts import (
    HOST,
    Fact,
    Facts,
    Judged,
    Known,
    Subject,
    Unknown,
    known,
    number,
    number_of,
    unknown,
    value_of,
)

SUBJECT = "pool"
FACTS = {
    "vdevs_but_logs": number("top-level vdevs that are no log"),
    "log_blocks_each": number("blocks that were surely written to each log vdev"),
}
COUNT = "zil_itx_metaslab_slog_count"
BY_DATASET = (2, 2)  # the release from which on each dataset has counters of its own


def derive(pool: Subject, facts: Facts) -> Iterator[Fact]:
    """Unknown where the vdevs are; the blocks also where the kernel counts those of several pools together."""
    if isinstance(found := facts.get(pool, "vdevs"), Unknown):
        for name in FACTS:
            yield Fact(pool, name, found)
        return
    classes = [value_of(facts.get(each, "allocation_class")) for each in facts.linked(pool, "vdevs")]
    logs = classes.count("log")
    yield Fact(
        pool, "vdevs_but_logs", known(len(classes) - logs, f"{len(classes) - logs} top-level vdevs", "zpool status")
    )
    yield Fact(pool, "log_blocks_each", _log_blocks(pool, max(logs, 1), facts))


def _log_blocks(pool: Subject, logs: int, facts: Facts) -> Judged:
    """By the datasets of the pool from 2.2 on; before, by the count of all pools, where there is no other."""
    counted = [facts.get(each, COUNT) for each in facts.linked(pool, "datasets")]
    own = [each for each in counted if isinstance(each, Known) and each.value]
    if own:
        return Known(sum(map(number_of, own)) // logs, own[0].evidence)
    release = facts.get(HOST, "zfs_version")
    if isinstance(release, Unknown):
        return release
    assert isinstance(release.value, tuple)
    version = tuple(part for part in release.value if isinstance(part, int))
    counts_apart = version >= BY_DATASET or releases.untold(release.value, BY_DATASET)
    if counts_apart and (unread := [each for each in counted if isinstance(each, Unknown)]):
        return unread[0]
    together = every((facts.get(HOST, COUNT), facts.get(HOST, "imported_pools")))
    if isinstance(together, Unknown):
        return together
    if facts.linked(HOST, "imported_pools") != (pool,):
        return unknown("/proc/spl/kstat/zfs/zil: counts the log blocks of all pools together")
    return Known(number_of(together[0]) // logs, together[0].evidence)
