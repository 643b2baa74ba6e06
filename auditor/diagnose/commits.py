"""What the kernel traced: who committed, how long each waited, and to which dataset. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from auditor.diagnose import histograms
from auditor.diagnose.counters import Counted
from auditor.diagnose.histograms import Thread
from auditor.diagnose.model import Cause
from auditor.diagnose.observation import KERNEL, Observation, Traced
from auditor.facts import HOST, Facts, Subject, word_of
from auditor.verify.histogram import Histogram
from auditor.verify.result import Slice

FEW = 20  # commits, below which no mean is told as that of a load
TOLD = 5  # commits by which two counts may differ that are not read at the same moment, and this share of them:
TOLERANCE = 0.05
LABELS = 4  # writes to a device when a transaction group ends: uberblocks and configuration (module/zfs/vdev_label.c)
MOST_LATE = 0.5  # share of the time; a trace that ends before that says nothing of the counters


class Trace(NamedTuple):
    """What the histograms come to. faults: why they are not believed. whole: every commit that was traced is among those of
    the threads."""

    threads: tuple[Thread, ...] = ()
    latency: Histogram = Histogram()
    timeline: tuple[Slice, ...] = ()
    queue_ns: float | None = None
    faults: tuple[str, ...] = ()
    whole: bool = False

    @property
    def commits(self) -> int:
        return sum(each.commits for each in self.threads)

    @property
    def mean_ns(self) -> float | None:
        return sum(each.us for each in self.threads) * 1000 / self.commits if self.commits else None


def traced(seen: Traced, began: float) -> Trace:
    faults = []
    if seen.missed is None:
        faults.append("the kernel did not say whether it traced every commit")
    elif seen.missed:
        faults.append(f"the kernel did not trace {seen.missed} calls")
    if not histograms.whole(seen.commits) or not all(histograms.whole(tick.commits) for tick in seen.ticks):
        faults.append("a histogram of the kernel had no room for all that came")
    threads, queued = histograms.threads(seen.commits), histograms.threads(seen.queue)
    if unread := threads.unread + queued.unread:
        faults.append(f"{unread} entries of the kernel's histograms of threads could not be read")
    latency, timeline = Histogram(), tuple[Slice, ...]()
    try:
        latency = histograms.latencies(seen.ticks[-1].commits) if seen.ticks else latency
        timeline = histograms.slices(began, seen.ticks)
    except ValueError as error:
        faults.append(str(error))
    commits, writers = (sum(each.commits for each in found.rows) for found in (threads, queued))
    # who finds its records in somebody else's block never waits for a turn of its own
    queue = sum(each.us for each in queued.rows) * 1000 / commits if commits and writers >= 0.5 * commits else None
    whole = histograms.whole(seen.commits) and not threads.unread
    return Trace(threads.rows, latency, timeline, queue, tuple(faults), whole)


def crowd(threads: Sequence[Thread]) -> int | None:
    """Threads that commit to the busiest ZIL."""
    crowds: dict[int, int] = {}
    for each in threads:
        if each.commits >= FEW:
            crowds[each.zil] = crowds.get(each.zil, 0) + 1
    return max(crowds.values(), default=None)


def close(one: int, other: int, more: float = 0.0) -> bool:
    """Whether two counts are the same that were not read at the same moment. more: by which they may differ besides."""
    return abs(one - other) <= max(TOLD, TOLERANCE * max(one, other)) + more


def of_kernel(seen: Observation, threads: Sequence[Thread]) -> list[Thread]:
    """What threads of the kernel did for volumes."""
    kernels = {each.pid for each in seen.processes if each.role == KERNEL}
    return [each for each in threads if each.pid in kernels and each.name.startswith("zvol")]


def datasets_of(
    threads: Sequence[Thread], counted: Counted, facts: Facts, of_volumes: Collection[Thread] = ()
) -> dict[int, str]:
    """ZIL -> the one dataset whose count of commits is like that of the ZIL. One that no count fits is that of the dataset
    with sync=disabled, where there is only one that is written to: its commits are not counted. of_volumes: threads of the
    kernel among these."""
    sums: dict[int, int] = {}
    for each in threads:
        sums[each.zil] = sums.get(each.zil, 0) + each.commits
    sums.pop(0, None)
    found = _only_volume({each.zil for each in of_volumes}, counted, facts)
    fits = {
        zil: [each.name for each in counted.datasets if each.commits and close(each.commits, commits)]
        for zil, commits in sums.items()
    }
    for zil, names in fits.items():
        if len(names) == 1 and sum(names[0] in others for others in fits.values()) == 1:
            found[zil] = names[0]
    quiet = silent(counted, facts)
    left = [zil for zil, names in fits.items() if not names and zil not in found]
    if len(quiet) == 1 and len(left) == 1:
        found[left[0]] = quiet[0]
    return found


def _only_volume(zils: set[int], counted: Counted, facts: Facts) -> dict[int, str]:
    """Where commits are counted of all datasets and pools together (OpenZFS 2.1): the one ZIL of volumes is that of the one
    dataset that was written to, where that is a volume and a log block was written for every other commit at least, which
    one that nobody writes to has none of."""
    written = [each.name for each in counted.datasets if each.writes]
    commits, blocks = counted.zil.commits or 0, counted.zil.blocks or 0
    alone = len(facts.linked(HOST, "imported_pools")) == 1
    if counted.zil.apart or not alone or len(zils) != 1 or len(written) != 1 or 2 * blocks < commits:
        return {}
    return dict.fromkeys(zils, written[0]) if volumes(written, facts) else {}


def volumes(names: Collection[str], facts: Facts) -> set[str]:
    """Those of these datasets that are volumes."""
    return {name for name in names if word_of(facts.get(Subject("dataset", name), "type")) == "volume"}


def silent(counted: Counted, facts: Facts, *, idle: bool = False) -> list[str]:
    """Datasets with sync=disabled that were written to; idle: and those that were not, to which a sync may come as well."""
    return [
        each.name
        for each in counted.datasets
        if (each.writes or idle) and word_of(facts.get(Subject("dataset", each.name), "sync")) == "disabled"
    ]


def mixed(counted: Counted, pool: Subject, facts: Facts) -> str:
    """Why the commits may be those of another pool, too, where all are counted together (OpenZFS 2.1): empty where no other is
    imported, or the log devices of this one alone wrote as many blocks as were counted, and labels."""
    pools, commits = facts.linked(HOST, "imported_pools"), counted.zil.commits
    if counted.zil.apart or pools == (pool,) or (commits is not None and commits < FEW):
        return ""
    tops: dict[str, int] = {}
    for leg in counted.legs:
        if leg.kind == "log":
            tops[leg.top] = max(tops.get(leg.top, 0), leg.writes)
    blocks, written = counted.zil.blocks, sum(tops.values())
    if blocks and tops and close(blocks, written, LABELS * len(tops) * (len(counted.txgs) + 1)):
        return ""
    others = ", ".join(each.name for each in pools if each != pool) or "which others are imported was not seen"
    return f"this release counts the commits of all pools together, not those of {pool.name} alone ({others})"


def disagree(counted: Counted, trace: Trace, lost: Sequence[Cause], late: float) -> tuple[str, ...]:
    """Where the ZIL counted something else than the trace. Syncs that do nothing are not counted by it. late: seconds by which
    it was read later, at most."""
    commits = counted.zil.commits
    if not trace.whole or commits is None or lost:
        return ()
    if close(commits, trace.commits, min(late / counted.seconds, MOST_LATE) * commits):
        return ()
    return (
        f"the kernel traced {trace.commits} commits, those of other pools among them, and the ZIL counted {commits}",
    )
